// The built package in a page: served as a static host would, with golden models beside it.
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type BrowserContext, type Page } from "@playwright/test";
import { fileBody } from "../support/body.ts";
import { test as base } from "../support/browser.ts";
import { TestServer } from "../support/server.ts";
import { GOLDENS } from "./goldens.ts";

type Rullama = typeof import("../../client/src/index.js");

/** What pages of these tests have in their global scope. */
declare global {
  var rullama: Rullama;
  /** Bytes of GPU buffers that were made and not destroyed yet, and devices that were opened. */
  var gpuWatch: { bytes: number; devices: GPUDevice[] };
}

export type Thread = "page" | "worker";

/** Counts buffers in this realm; runs before anything else, in pages and in workers. */
function watchGpu(): void {
  const watch: { bytes: number; devices: GPUDevice[] } = { bytes: 0, devices: [] };
  globalThis.gpuWatch = watch;
  if (!("GPUDevice" in globalThis)) return;
  const alive = new Map<GPUBuffer, GPUDevice>();
  const { createBuffer, destroy: destroyDevice } = GPUDevice.prototype;
  GPUDevice.prototype.createBuffer = function (descriptor) {
    const buffer = createBuffer.call(this, descriptor);
    alive.set(buffer, this);
    watch.bytes += buffer.size;
    return buffer;
  };
  const gone = (buffer: GPUBuffer) => {
    if (alive.delete(buffer)) watch.bytes -= buffer.size;
  };
  const { destroy } = GPUBuffer.prototype;
  GPUBuffer.prototype.destroy = function () {
    gone(this);
    return destroy.call(this);
  };
  // Buffers of a device that is destroyed are gone too; that is not counted, so that tests see whether we clean up ourselves.
  GPUDevice.prototype.destroy = function () {
    return destroyDevice.call(this);
  };
  const { requestDevice } = GPUAdapter.prototype;
  GPUAdapter.prototype.requestDevice = async function (descriptor) {
    const device = await requestDevice.call(this, descriptor);
    watch.devices.push(device);
    return device;
  };
}

const PAGE = `<!doctype html><meta charset="utf-8"><title>test</title><link rel="icon" href="data:,"><script type="module">
globalThis.rullama = await import("/rullama/index.js");
</script>`;

export const CLIENT = fileURLToPath(new URL("../../client/dist/", import.meta.url));

export interface Fixtures {
  server: TestServer;
  /** A page in which `rullama` is imported. */
  client: Page;
}

export async function startServer(): Promise<TestServer> {
  const server = await TestServer.start({ folders: { "/rullama/": CLIENT } });
  for (const name of ["tiny-e2b-Q4_K_M", "tiny-moe-Q4_K_M"]) {
    server.file(`/goldens/gguf/${name}.gguf`, await fileBody(join(GOLDENS, "gguf", `${name}.gguf`)));
  }
  server.html("/", PAGE);
  return server;
}

export async function openClient(context: BrowserContext, server: TestServer): Promise<Page> {
  const page = context.pages()[0] ?? (await context.newPage());
  await page.addInitScript(watchGpu);
  await page.goto(server.origin);
  await page.waitForFunction(() => "rullama" in globalThis);
  return page;
}

export const test = base.extend<Fixtures>({
  // eslint-disable-next-line no-empty-pattern -- Playwright wants a pattern here.
  server: async ({}, use) => {
    const server = await startServer();
    await use(server);
    await server.close();
  },
  client: async ({ context, server }, use) => {
    await use(await openClient(context, server));
  },
});

export { expect } from "../support/browser.ts";
