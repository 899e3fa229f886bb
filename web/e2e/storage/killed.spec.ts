// kill -9 of the whole browser while a download is written: after a restart with the same profile the download resumes from the
// parts on disk, and nothing incomplete is taken for the model.
import process from "node:process";
import type { BrowserContext } from "@playwright/test";
import type { Body } from "../support/body.ts";
import { deleteProfile, newProfile, openProfile } from "../support/browser.ts";
import type { ServedFile } from "../support/served-file.ts";
import type { TestServer } from "../support/server.ts";
import { type Run, digest as digestOf, enter, expect, patternBody, test } from "./fixtures.ts";

const MIB = 1 << 20;
const FILE_BYTES = 16 * MIB;
const PART_BYTES = MIB / 4;
const KILLS = 3;
/** The browser may open and flush some parts between the server's send and the kill. */
const MOST_DELAY_MS = 20;

/** Process id of the browser itself: the parent of its GPU, network and renderer processes. */
async function browserProcess(context: BrowserContext): Promise<number> {
  const session = await context.browser()!.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  const browser = processInfo.find(({ type }) => type === "browser");
  if (!browser) throw new Error("the browser does not tell its process id");
  return browser.id;
}

/** A body that calls `reached` when the server is about to send the byte at `offset` for the first time. */
function tripwire(body: Body, offset: number, reached: () => void): Body {
  let armed = true;
  return {
    size: body.size,
    read(start, end) {
      if (armed && offset < end) {
        armed = false;
        reached();
      }
      return body.read(start, end);
    },
  };
}

interface Moment {
  /** Bytes that the page reported as written before the rest is sent. */
  acknowledged: number;
  /** The browser is killed so long after this byte is sent. */
  killAt: number;
  delayMs: number;
}

/** Downloads until the browser is killed at this moment. Returns the file, which is then served without faults. */
async function downloadAndKill(profile: string, server: TestServer, moment: Moment): Promise<ServedFile> {
  const context = await openProfile(profile);
  const pid = await browserProcess(context);
  const kill = () => void setTimeout(() => process.kill(pid, "SIGKILL"), moment.delayMs);
  const whole = patternBody(FILE_BYTES);
  const file = server.file("/m.gguf", tripwire(whole, moment.killAt, kill));
  file.hold(moment.acknowledged);
  const run = await enter(context.pages()[0]!, server);
  await run(
    async ({ url, sha256, partBytes }) => {
      await lab.open(url, { sha256 }, { partBytes });
    },
    { url: file.url, sha256: await digestOf(whole), partBytes: PART_BYTES },
  );
  await expect.poll(() => run(() => lab.heard.at(-1) ?? 0, undefined)).toBe(moment.acknowledged);
  const ended = new Promise<void>((resolve) => context.on("close", () => resolve()));
  // The last part stays on the server: the download cannot end before the kill.
  file.release(FILE_BYTES - PART_BYTES);
  await ended;
  file.breakConnections();
  file.release();
  return file;
}

/** Reads the model while the download resumes, in steps so small that no read goes to the network beside the download. */
async function finish(run: Run, file: ServedFile, sha256: string): Promise<string> {
  return run(
    async ({ url, sha256 }) => {
      const number = await lab.open(url, { sha256 });
      const digest = await lab.digest(number);
      await Promise.all([lab.model(number).stored, lab.model(number).verified]);
      return digest;
    },
    { url: file.url, sha256 },
  );
}

for (let kill = 0; kill < KILLS; kill++) {
  test(`kill -9 of the browser while a download is written, moment ${kill + 1} of ${KILLS}`, async ({ server }) => {
    // Random within one third of the file each, without its first megabyte and its end.
    const acknowledged = Math.floor(MIB + ((kill + Math.random()) / KILLS) * (FILE_BYTES - 6 * MIB));
    const killAt = Math.floor(acknowledged + Math.random() * 3 * MIB);
    const moment = { acknowledged, killAt, delayMs: Math.random() * MOST_DELAY_MS };
    const told = JSON.stringify(moment);
    const profile = await newProfile();
    try {
      const file = await downloadAndKill(profile, server, moment);
      const sha256 = await digestOf(file.body);
      const before = file.sent;
      expect(before, told).toBeGreaterThan(killAt);

      const context = await openProfile(profile);
      const run = await enter(context.pages()[0]!, server);
      const report = async () => (await run(() => lab.models.report(), undefined)).models;
      const killed = await report();
      expect(killed, told).toMatchObject([{ complete: false, bytes: FILE_BYTES }]);
      const { have } = killed[0]!;
      // Parts that were full when the page reported them were flushed: a kill cannot lose them.
      expect(have, told).toBeGreaterThanOrEqual(acknowledged - (acknowledged % PART_BYTES));
      expect(have, told).toBeLessThanOrEqual(FILE_BYTES - PART_BYTES);

      expect(await finish(run, file, sha256), told).toBe(sha256);
      // One byte more for the request that looks at the file's version.
      expect(file.sent - before, told).toBeLessThanOrEqual(FILE_BYTES - have + 1);
      expect(file.sent, told).toBeLessThan(2 * FILE_BYTES);
      await expect.poll(report, told).toMatchObject([{ complete: true, have: FILE_BYTES }]);
      await context.close();
    } finally {
      await deleteProfile(profile);
    }
  });
}
