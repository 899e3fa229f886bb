import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { POLICY } from "../policy.js";
import { sameOrigin } from "../src/lib/same-origin.js";
import config from "../vite.config.js";

test("the app that is shipped has one page, and no benchmark in it", async () => {
  const built = async (mode: string) => {
    const made = await (config as unknown as (given: object) => unknown)({ mode, command: "build" });
    const { build } = made as { build: { outDir: string; rolldownOptions: { input: string[] } } };
    return [build.outDir, build.rolldownOptions.input.map((page) => page.replace(/^.*\/app\//u, ""))];
  };
  expect(await built("production")).toEqual(["dist", ["index.html"]]);
  expect(await built("bench")).toEqual(["bench-dist", ["bench.html"]]);
});

test("results of benchmarks go to the page's own origin alone", () => {
  const page = "http://127.0.0.1:8080/bench.html?model=x";
  expect(sameOrigin("/log", page)).toBe("http://127.0.0.1:8080/log");
  expect(sameOrigin("http://127.0.0.1:8080/done", page)).toBe("http://127.0.0.1:8080/done");
  expect(sameOrigin(null, page)).toBeUndefined();
  for (const other of ["https://evil.example/", "//evil.example/log", "http://127.0.0.1:8081/log", "data:,x"]) {
    expect(() => sameOrigin(other, page)).toThrow("another origin");
  }
});

test("the policy in the page is the one that rullama serve sends", () => {
  const source = readFileSync(new URL("../../../crates/server/src/headers.rs", import.meta.url), "utf8");
  const sent = /PAGE_POLICY: &str = "([^"]+)"/u.exec(source)?.[1]?.replace(/\\\s+/gu, "");
  expect(sent).toBe(`${POLICY}; frame-ancestors 'none'`);
});
