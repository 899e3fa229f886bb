// The built package in a page: served as a static host would, with golden models beside it. Software GPUs compile kernels for half a
// minute and once for each device, so all tests of a process share a page and the models in it.
import { WORKER } from "./lost.ts";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type BrowserContext, type Page } from "@playwright/test";
import { fileBody } from "../support/body.ts";
import { test as base, openBrowser, watched } from "../support/browser.ts";
import type { ServedFile } from "../support/served-file.ts";
import { type ServerOptions, TestServer } from "../support/server.ts";
import { GOLDENS } from "./goldens.ts";

type Rullama = typeof import("../../client/src/index.js");

/** What pages of these tests have in their global scope. */
declare global {
  var rullama: Rullama;
  /** Bytes of GPU buffers that were made and not destroyed yet, and devices that were opened. */
  var gpuWatch: { bytes: number; devices: GPUDevice[] };
  /** The model that tests share: in a worker with subgroups, in the page without. A test that loses it releases it. */
  var sharedModel: (thread: Thread) => Promise<Model>;
  /** Frees it; the next test that wants one loads it anew. */
  var release: (thread: Thread) => Promise<void>;
  /** An image file: a green square. */
  var greenSquare: () => Promise<Blob>;
}

type Model = Awaited<ReturnType<Rullama["load"]>>;
export type Thread = "page" | "worker";

/** All features of E2B in half a megabyte. */
export const NAME = "micro-e2b-Q8_0";
export const MODEL = `/goldens/gguf/${NAME}.gguf`;
export const PROJECTOR = "/goldens/gguf/micro-e2b-mmproj-F16.gguf";

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
const models = new Map();
globalThis.sharedModel = (thread) => {
  const worker = thread === "worker";
  const options = { keep: false, context: 512, cache: "f32", projector: "${PROJECTOR}", features: { subgroups: worker }, worker, workerScript: "/worker.js" };
  if (!models.has(thread)) models.set(thread, rullama.load("${MODEL}", options));
  return models.get(thread);
};
globalThis.greenSquare = () => {
  const canvas = new OffscreenCanvas(96, 96);
  const context = canvas.getContext("2d");
  context.fillStyle = "green";
  context.fillRect(16, 16, 48, 48);
  return canvas.convertToBlob();
};
globalThis.release = async (thread) => {
  const model = await models.get(thread);
  models.delete(thread);
  await model?.free();
};
</script>`;

export const CLIENT = fileURLToPath(new URL("../../client/dist/", import.meta.url));

export interface Fixtures {
  server: TestServer;
  /** The projector of the shared models. */
  projector: ServedFile;
  /** A page in which `rullama` is imported. */
  client: Page;
}

export async function startServer(options: ServerOptions = {}): Promise<TestServer> {
  const server = await TestServer.start({ ...options, folders: { "/rullama/": CLIENT } });
  for (const name of [NAME, "tiny-e2b-Q4_K_M", "tiny-moe-Q4_K_M"]) {
    server.file(`/goldens/gguf/${name}.gguf`, await fileBody(join(GOLDENS, "gguf", `${name}.gguf`)));
  }
  server.html("/", PAGE);
  server.script("/worker.js", WORKER);
  return server;
}

async function openClient(context: BrowserContext, server: TestServer): Promise<Page> {
  const page = context.pages()[0] ?? (await context.newPage());
  await page.addInitScript(watchGpu);
  await page.goto(server.origin);
  await page.waitForFunction(() => "rullama" in globalThis);
  return page;
}

interface Studio {
  context: BrowserContext;
  page: Page;
  server: TestServer;
  projector: ServedFile;
}

export const test = base.extend<Fixtures, { studio: Studio }>({
  studio: [
    // oxlint-disable-next-line no-empty-pattern -- Playwright reads the parameter list.
    async ({}, use) => {
      const server = await startServer();
      const context = await openBrowser();
      const projector = server.file(PROJECTOR, await fileBody(join(GOLDENS, `..${PROJECTOR}`)));
      await use({ context, server, projector, page: await openClient(context, server) });
      await context.close();
      await server.close();
    },
    { scope: "worker", timeout: 120_000 },
  ],
  server: ({ studio }, use) => use(studio.server),
  projector: ({ studio }, use) => use(studio.projector),
  client: ({ studio }, use) => watched(studio.context, true, () => use(studio.page)),
});

export { expect } from "../support/browser.ts";
