// The op suite in Firefox: each operation against its CPU reference, at every feature level the adapter can emulate. RULLAMA_OPS names beginnings of
// "operation case", parted by commas, for those alone; RULLAMA_OPS_MOST takes so many cases of each operation.
import { fileURLToPath } from "node:url";
import process from "node:process";
import { expect, test } from "@playwright/test";
import type { Page } from "puppeteer-core";
import { openFirefox } from "../support/firefox.ts";
import { TestServer } from "../support/server.ts";

interface Result {
  op: string;
  name: string;
  featureLevel: string;
  verdict: "passed" | "failed" | "skipped";
  message: string;
  ms: number;
}

interface Outcome {
  adapter: string;
  facts: string;
  results: Result[];
  pipelines: string[];
}

type Told = { total: number; results: Result[]; outcome?: Outcome | string };

declare global {
  var runSuite: (options: {
    filter?: string;
    most?: number;
    begun?: (total: number) => void;
    each?: (result: Result) => void;
  }) => Promise<Outcome>;
  /** What the page has to tell since it was last asked. */
  var told: Told;
}

const WEB = fileURLToPath(new URL("../..", import.meta.url));
/** The whole suite takes a quarter of an hour of an idle machine; one that is stuck is noticed by its silence. */
const LIMIT_MS = 3 * 3_600_000;
const SILENCE_MS = 600_000;
const ASKED_MS = 5_000;
const SPOKEN_MS = 60_000;

/** Runs the suite and asks the page for results as they come: no single call may take as long as all of it. */
async function run(page: Page, options: { filter: string; most?: number }): Promise<Outcome> {
  await page.evaluate((given) => {
    globalThis.told = { total: 0, results: [] };
    const begun = (total: number) => void (told.total = total);
    const each = (result: Result) => void told.results.push(result);
    runSuite({ ...given, begun, each }).then(
      ({ adapter, facts, pipelines }) => (told.outcome = { adapter, facts, pipelines, results: [] }),
      (error: unknown) => (told.outcome = String(error)),
    );
  }, options);
  const results: Result[] = [];
  let [heard, spoken] = [Date.now(), Date.now()];
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, ASKED_MS));
    const { total, results: more, outcome } = await page.evaluate(() => ({ ...told, results: told.results.splice(0) }));
    results.push(...more);
    if (more.length > 0) heard = Date.now();
    if (Date.now() - spoken > SPOKEN_MS || outcome !== undefined) {
      console.log(`${results.length} of ${total} runs`);
      spoken = Date.now();
    }
    if (typeof outcome === "string") throw new Error(`the suite ended after ${results.length} runs: ${outcome}`);
    if (outcome) return { ...outcome, results };
    if (Date.now() - heard > SILENCE_MS) throw new Error(`nothing was heard after ${results.length} of ${total} runs`);
  }
}

/** A line for each operation and feature level: how many cases came out how. */
function table(results: Result[]): string {
  const groups = new Map<string, Result[]>();
  for (const one of results) {
    const key = `${one.op.padEnd(24)}${one.featureLevel.padEnd(16)}`;
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  const lines = [...groups].map(([key, runs]) => {
    const count = (verdict: Result["verdict"]) => `${runs.filter((one) => one.verdict === verdict).length} ${verdict}`;
    const seconds = runs.reduce((sum, one) => sum + one.ms, 0) / 1000;
    return `${key}${count("passed")}, ${count("failed")}, ${count("skipped")}   ${seconds.toFixed(1)} s`;
  });
  return lines.join("\n");
}

test("every operation is what its CPU reference is", { tag: "@slow" }, async () => {
  test.setTimeout(LIMIT_MS);
  const filter = process.env["RULLAMA_OPS"] ?? "";
  const most = Number(process.env["RULLAMA_OPS_MOST"] ?? 0);
  const server = await TestServer.start({ folders: { "/": WEB } });
  const firefox = await openFirefox(`${server.origin}/ops/?wait`);
  try {
    const { page } = firefox;
    // A trap inside an async export never settles its promise; this is how we hear of it.
    const broken = new Promise<never>((_, reject) => page.on("pageerror", reject));
    await page.waitForFunction(() => "runSuite" in globalThis);
    const options = { filter, ...(most > 0 ? { most } : {}) };
    const outcome = await Promise.race([run(page, options), broken]);
    const { adapter, facts, results, pipelines } = outcome;
    console.log(`adapter: ${adapter}\n${facts}\n${table(results)}\n${pipelines.length} pipelines`);
    const failed = results.filter((one) => one.verdict === "failed");
    const told = failed.map(({ op, name, featureLevel, message }) => `${op} ${name} (${featureLevel}): ${message}`);
    expect(told).toEqual([]);
    expect(results.filter((one) => one.verdict === "passed").length).toBeGreaterThan(0);
  } finally {
    await firefox.close();
    await server.close();
  }
});
