/// <reference lib="webworker" />
// The service worker. One cache per build holds the pages, scripts, styles and the wasm of that build: they have
// hashed names, so a page never meets another build's wasm. Pages come from the network first, so a new version is
// seen at once; models and everything else pass by untouched.

declare const self: ServiceWorkerGlobalScope & { __WB_MANIFEST: { url: string; revision: string | null }[] };

const FILES = self.__WB_MANIFEST;
const PREFIX = "rullama-app-";
const CACHE = PREFIX + fingerprint(JSON.stringify(FILES));
const PATIENCE_MS = 4000;

function fingerprint(text: string): string {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return (hash >>> 0).toString(16);
}

const address = (path: string) => new URL(path, self.registration.scope).href;
const known = new Set(FILES.map((file) => address(file.url)));

async function fill(): Promise<void> {
  const cache = await caches.open(CACHE);
  // Past the HTTP cache, which may hold the old version of files without a hash in their name.
  await cache.addAll(
    FILES.map((file) => new Request(file.url, { cache: file.revision === null ? "default" : "reload" })),
  );
}

async function tidy(): Promise<void> {
  const names = await caches.keys();
  await Promise.all(
    names.filter((name) => name.startsWith(PREFIX) && name !== CACHE).map((name) => caches.delete(name)),
  );
  await self.clients.claim();
}

/** The kept page of an address: `/` is `index.html`. */
async function keptPage(url: URL): Promise<Response | undefined> {
  const cache = await caches.open(CACHE);
  const path = url.pathname.endsWith("/") ? `${url.pathname}index.html` : url.pathname;
  return (await cache.match(address(path))) ?? (await cache.match(address("index.html")));
}

async function page(request: Request): Promise<Response> {
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), PATIENCE_MS);
  try {
    const fresh = await fetch(request, { signal: stop.signal });
    if (fresh.ok || fresh.type === "opaqueredirect") return fresh;
    return (await keptPage(new URL(request.url))) ?? fresh;
  } catch (error) {
    const kept = await keptPage(new URL(request.url));
    if (kept) return kept;
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

async function file(request: Request, key: string): Promise<Response> {
  const cache = await caches.open(CACHE);
  return (await cache.match(key)) ?? fetch(request);
}

self.addEventListener("install", (event) => event.waitUntil(fill()));
self.addEventListener("activate", (event) => event.waitUntil(tidy()));
self.addEventListener("message", (event) => {
  if (event.data === "take over") void self.skipWaiting();
});
self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== self.location.origin) return;
  if (request.mode === "navigate") {
    event.respondWith(page(request));
    return;
  }
  const key = url.origin + url.pathname;
  if (known.has(key) && !request.headers.has("range")) event.respondWith(file(request, key));
});

export {};
