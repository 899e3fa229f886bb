// The wasm: beside this module, or where it was said to be.

import init, { type InitOutput } from "./wasm/rullama.js";

export async function startWasm(address?: string): Promise<InitOutput> {
  const url = new URL("./wasm/rullama_bg.wasm", import.meta.url);
  return init({ module_or_path: await wasmSource(url, address) });
}

/** What to compile: an address that is fetched, or the bytes of a file. */
export async function wasmSource(url: URL, address?: string): Promise<string | URL | Uint8Array<ArrayBuffer>> {
  if (address === undefined && url.protocol === "file:") return fileBytes(url);
  return address ?? url;
}

/** Node's `fetch` reads no files. The name is not written out, so that bundlers leave it alone. */
async function fileBytes(url: URL): Promise<Uint8Array<ArrayBuffer>> {
  const files = "node:fs/promises";
  const { readFile } = (await import(/* @vite-ignore */ /* webpackIgnore: true */ files)) as {
    readFile(path: URL): Promise<Uint8Array<ArrayBuffer>>;
  };
  return readFile(url);
}
