// The op suite in headless Chromium: fails on any failing case, page error, or time limit.
//
//   node run-ops.mjs [FILTER]
//
// Without a filter a sample of each operation's cases runs: the whole suite runs natively on the same driver.
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { serve } from "./serve.mjs";

const LIMIT_MS = 900_000;
const SAMPLE = 3;
const BROWSERS = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];
// Software adapters are offered behind the first flag alone; the others keep the browser off the network.
const FLAGS = ["--enable-unsafe-webgpu", "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];

/** A promise that fails when time is up, and a way to stop the clock. */
function deadline(ms) {
  let timer;
  const expired = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not finished after ${ms / 1000} s`)), ms);
  });
  return { expired, stop: () => clearTimeout(timer) };
}

async function runInBrowser(address, filter) {
  const executablePath = BROWSERS.find(existsSync);
  if (!executablePath) throw new Error("no Chromium: `cargo xtask setup` installs it");
  const profile = await mkdtemp(join(tmpdir(), "rullama-browser-"));
  const context = await chromium.launchPersistentContext(profile, { executablePath, headless: true, args: FLAGS });
  const clock = deadline(LIMIT_MS);
  const page = await context.newPage();
  try {
    const broken = new Promise((_, reject) => {
      // A trap inside an async export never settles its promise; this is how we hear of it.
      page.on("pageerror", reject);
      page.on("crash", () => reject(new Error("the page crashed")));
      page.on("console", (message) => message.type() === "error" && console.error(`console: ${message.text()}`));
    });
    const work = (async () => {
      await page.goto(`${address}/ops/?wait`);
      await page.waitForFunction(() => "runSuite" in window);
      const most = filter === "" ? SAMPLE : undefined;
      return page.evaluate(([wanted, some]) => window.runSuite({ filter: wanted, most: some ?? undefined }), [filter, most]);
    })();
    return await Promise.race([work, broken, clock.expired]);
  } catch (error) {
    const at = await page.locator("#status").textContent({ timeout: 1000 }).catch(() => "an unknown place");
    throw new Error(`stopped at: ${at}`, { cause: error });
  } finally {
    clock.stop();
    await context.close();
    await rm(profile, { recursive: true, force: true });
  }
}

function report({ adapter, facts, results, pipelines }) {
  console.log(`adapter: ${adapter}\n${facts}`);
  const groups = group(results);
  for (const [key, runs] of groups) {
    const count = (verdict) => runs.filter((r) => r.verdict === verdict).length;
    const seconds = runs.reduce((sum, r) => sum + r.ms, 0) / 1000;
    const [op, featureLevel] = key.split("\t");
    console.log(`${op.padEnd(24)}${featureLevel.padEnd(16)}${count("passed")} passed, ${count("failed")} failed, `
      + `${count("skipped")} skipped as too large   ${seconds.toFixed(1)} s`);
  }
  for (const r of results.filter((run) => run.verdict === "failed")) {
    console.error(`FAILED ${r.op} ${r.name} (${r.featureLevel}): ${r.message}`);
  }
  const subgroup = pipelines.filter((label) => label.includes("subgroup"));
  console.log(`${pipelines.length} pipelines, ${subgroup.length} of them by subgroups, e.g. ${subgroup[0]}`);
}

function group(results) {
  const groups = new Map();
  for (const r of results) {
    const key = `${r.op}\t${r.featureLevel}`;
    groups.set(key, [...(groups.get(key) ?? []), r]);
  }
  return groups;
}

const web = dirname(dirname(fileURLToPath(import.meta.url)));
const { server, address } = await serve(web);
try {
  const filter = process.argv[2] ?? "";
  const outcome = await runInBrowser(address, filter);
  report(outcome);
  const { results, pipelines, facts } = outcome;
  if (results.length === 0) throw new Error(`no case matches \`${filter}\``);
  if (facts.includes("subgroups: Some") && filter === "" && !pipelines.some((label) => label.includes("subgroup"))) {
    throw new Error("the device has subgroups, but no kernel used them");
  }
  process.exitCode = results.some((r) => r.verdict === "failed") ? 1 : 0;
} finally {
  server.close();
}
