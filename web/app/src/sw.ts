/// <reference lib="webworker" />
// The service worker. One cache per build holds the pages, scripts, styles and the wasm of that build: they have
// hashed names, so a page never meets another build's wasm. Pages come from the network first, so a new version is
// seen at once; models and everything else pass by untouched. A build's cache stays until no tab runs that build any
// more: an update in one tab must not take the files of the others away, which the server may not have, either.

import { buildOfLock } from "./lib/build-lock.js";

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

/** Where files with hashed names are; one that this build does not know may be another build's. */
const ASSETS = new URL("assets/", self.registration.scope).pathname;
/** Large files that few need: not fetched with the rest, but kept from their first use on. */
const LATER = /\/assets\/(?:(?:pdf|mcp|template_bg)[.-][^/]*|[^/]*\.bcmap)$/u;
const address = (path: string) => new URL(path, self.registration.scope).href;
const known = new Set(FILES.map((file) => address(file.url)));

async function fill(): Promise<void> {
  const cache = await caches.open(CACHE);
  // Past the HTTP cache, which may hold the old version of files without a hash in their name.
  await cache.addAll(
    FILES.map((file) => new Request(file.url, { cache: file.revision === null ? "default" : "reload" })),
  );
}

/** Deletes the caches of builds that no tab runs. */
async function tidy(): Promise<void> {
  const old = (await caches.keys()).filter((name) => name.startsWith(PREFIX) && name !== CACHE);
  if (old.length === 0) return;
  const { held = [] } = await navigator.locks.query();
  const running = held.flatMap(({ name = "" }) => buildOfLock(name) ?? []);
  for (const name of old) {
    const cache = await caches.open(name);
    const needed = await Promise.all(running.map((script) => cache.match(script)));
    if (needed.every((found) => found === undefined)) await caches.delete(name);
  }
}

async function takeOver(): Promise<void> {
  await tidy();
  await self.clients.claim();
}

/** A file of another build than this one, for tabs that still run it. */
async function otherBuilds(key: string): Promise<Response | undefined> {
  for (const name of await caches.keys()) {
    const found = name.startsWith(PREFIX) && name !== CACHE ? await (await caches.open(name)).match(key) : undefined;
    if (found) return found;
  }
  return undefined;
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
  const kept = (await cache.match(key)) ?? (await otherBuilds(key));
  if (kept) return kept;
  const fresh = await fetch(request);
  if (fresh.ok && LATER.test(key)) await cache.put(key, fresh.clone());
  return fresh;
}

self.addEventListener("install", (event) => event.waitUntil(fill()));
self.addEventListener("activate", (event) => event.waitUntil(takeOver()));
self.addEventListener("message", (event) => {
  if (event.data === "take over") void self.skipWaiting();
});
self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== self.location.origin) return;
  if (request.mode === "navigate") {
    event.respondWith(page(request));
    // The page that is left may have been the last one of its build.
    event.waitUntil(tidy());
    return;
  }
  const key = url.origin + url.pathname;
  const ours = known.has(key) || url.pathname.startsWith(ASSETS);
  if (ours && !request.headers.has("range")) event.respondWith(file(request, key));
});
