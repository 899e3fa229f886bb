// Where the user is: the part of the address behind `#`.

export type Page = "chat" | "models" | "search" | "training" | "storage" | "settings" | "device";

export interface Route {
  page: Page;
  /** The conversation of a chat; absent for a new one. */
  id?: string;
}

const PAGES: readonly Page[] = ["chat", "models", "search", "training", "storage", "settings", "device"];

export function parseRoute(hash: string): Route {
  const [, name, id] = hash.split("/");
  const page = PAGES.find((one) => one === name) ?? "chat";
  return page === "chat" && id ? { page, id: decodeURIComponent(id) } : { page };
}

export function href(page: Page, id?: string): string {
  return id === undefined ? `#/${page}` : `#/${page}/${encodeURIComponent(id)}`;
}

function here(): Route {
  try {
    return parseRoute(location.hash);
  } catch {
    return { page: "chat" };
  }
}

export const route = $state<{ current: Route }>({ current: here() });

/** Goes to a page at once: the browser tells of a new address a little later, and what is typed until then would go to the old page. */
export function go(page: Page, id?: string): void {
  location.hash = href(page, id);
  follow();
}

function follow(): void {
  const now = here();
  if (now.page !== route.current.page || now.id !== route.current.id) route.current = now;
}

/** Names the conversation that is shown without a step in the history. */
export function replaceRoute(id: string): void {
  history.replaceState(null, "", href("chat", id));
  route.current = { page: "chat", id };
}

export function watch(): () => void {
  addEventListener("hashchange", follow);
  // The address may have changed while the app was starting.
  follow();
  return () => removeEventListener("hashchange", follow);
}
