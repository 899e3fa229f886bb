// Where this page is.

/** What relative addresses are relative to. Outside of browsers, where there is no page, a `rullama serve` on this machine. */
export function pageAddress(): string {
  const { document, location } = globalThis as { document?: Document; location?: Location };
  return document?.baseURI ?? location?.href ?? "http://127.0.0.1:11434/";
}
