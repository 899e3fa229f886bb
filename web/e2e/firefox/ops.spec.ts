// The op suite in Firefox: each operation against its CPU reference, in every role the adapter can play. RULLAMA_OPS names beginnings of
// "operation case", parted by commas, for those alone; RULLAMA_OPS_MOST takes so many cases of each operation.
import { fileURLToPath } from "node:url";
import process from "node:process";
import { expect, test } from "@playwright/test";
import { openFirefox } from "../support/firefox.ts";
import { TestServer } from "../support/server.ts";

interface Result {
  op: string;
  name: string;
  play: string;
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

declare global {
  var runSuite: (options: { filter?: string; most?: number }) => Promise<Outcome>;
}

const WEB = fileURLToPath(new URL("../..", import.meta.url));
const LIMIT_MS = 3_600_000;

/** A line for each operation and role: how many cases came out how. */
function table(results: Result[]): string {
  const groups = new Map<string, Result[]>();
  for (const one of results) {
    const key = `${one.op.padEnd(24)}${one.play.padEnd(12)}`;
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
    const outcome = await Promise.race([page.evaluate((given) => runSuite(given), options), broken]);
    const { adapter, facts, results, pipelines } = outcome;
    console.log(`adapter: ${adapter}\n${facts}\n${table(results)}\n${pipelines.length} pipelines`);
    const failed = results.filter((one) => one.verdict === "failed");
    expect(failed.map(({ op, name, play, message }) => `${op} ${name} (${play}): ${message}`)).toEqual([]);
    expect(results.filter((one) => one.verdict === "passed").length).toBeGreaterThan(0);
  } finally {
    await firefox.close();
    await server.close();
  }
});
