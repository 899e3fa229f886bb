// Tools: arithmetic without programs, time, limits, names, and a real MCP server.
import { createHash } from "node:crypto";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { startMcp, type McpTestServer } from "../../e2e/support/mcp.js";
import { FRAME_HASH } from "../policy.js";
import { unique } from "../src/state/tools.svelte.js";
import { timeAt, type AppTool } from "../src/tools/builtin.js";
import { calculate, CalculatorError, shown } from "../src/tools/calculator.js";
import { limited } from "../src/tools/limited.js";
import { callTool, listTools, McpError } from "../src/tools/mcp.js";
import { FRAME_SCRIPT } from "../src/tools/sandbox-frame.js";
import { forms } from "../src/tools/sandbox.js";

describe("the calculator", () => {
  test.each([
    ["1 + 2 * 3", 7],
    ["-2^2", -4],
    ["2^3^2", 512],
    ["2^-1", 0.5],
    ["(1 + 2) * -3", -9],
    ["10 % 4 - 3!", -4],
    ["1_000 × 2 ÷ 4", 500],
    ["sqrt(16) + max(1, 5, 3) + log(1000) + ln(e)", 13],
    ["round(2.345, 2)", 2.35],
    [".5e1 + 1E2", 105],
    ["cos(π)", -1],
  ])("computes %s", (expression, value) => expect(calculate(expression)).toBeCloseTo(value, 12));

  test("says what is wrong, and runs nothing", () => {
    for (const [expression, why] of [
      ["", "ends too early"],
      ["1 +", "ends too early"],
      ["(1", "closing parenthesis"],
      ["1 2", 'unexpected "2"'],
      ["1 / 0", "infinite"],
      ["0 / 0", "not a number"],
      ["constructor(1)", "no function or constant"],
      ["alert(1)", "no function or constant"],
      ["a = 1", 'unexpected "="'],
      ["171!", "factorials"],
      ["(".repeat(3000), "too long"],
      ["(".repeat(500), "nested too deeply"],
      ["-".repeat(500), "nested too deeply"],
    ] as const)
      expect(() => calculate(expression), expression).toThrow(why);
    fc.assert(
      fc.property(fc.string({ maxLength: 40 }), (text) => {
        try {
          expect(Number.isFinite(calculate(text))).toBe(true);
        } catch (error) {
          expect(error).toBeInstanceOf(CalculatorError);
        }
      }),
    );
  });

  test("shows no digits that doubles get wrong", () => {
    expect(shown(calculate("0.1 + 0.2"))).toBe("0.3");
    expect(shown(calculate("2^53 - 1"))).toBe("9007199254740991");
  });
});

test("the time is told for a zone, and an unknown zone is named", () => {
  const told = timeAt("Asia/Tokyo", new Date("2026-01-31T20:00:00Z"));
  expect(told).toMatchObject({ timezone: "Asia/Tokyo", utc: "2026-01-31T20:00:00.000Z" });
  expect(told["local"]).toMatch(/Sunday,? 1 February 2026.* 05:00:00/u);
  expect(() => timeAt("Mars/Base")).toThrow("no time zone Mars/Base");
});

test("work ends with its limit, with its signal, and at once where that is over", async () => {
  vi.useFakeTimers();
  const never = () => new Promise<never>(() => {});
  const signal = new AbortController().signal;
  const late = expect(limited(never, 10_000, signal)).rejects.toThrow("no result within 10 seconds");
  await vi.advanceTimersByTimeAsync(10_000);
  await late;
  const stop = new AbortController();
  const stopped = expect(limited(never, 10_000, stop.signal)).rejects.toThrow("enough");
  stop.abort(new Error("enough"));
  await stopped;
  await expect(limited(() => "done", 10_000, stop.signal)).rejects.toThrow("enough");
  expect(await limited(() => "done", 10_000, signal)).toBe("done");
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

test("names of tools are such as models can write, and unique", () => {
  const named = (name: string) => ({ name }) as AppTool;
  const names = unique([named("calculator"), named("calculator"), named("über/tool"), named("x".repeat(99))]);
  expect(names.map(({ name }) => name)).toEqual(["calculator", "calculator_2", "_ber_tool", "x".repeat(60)]);
});

test("the page's policy allows the script of the sandbox's frame", () => {
  expect(FRAME_HASH).toBe(`'sha256-${createHash("sha256").update(FRAME_SCRIPT).digest("base64")}'`);
});

test("a program is read as an expression, as statements with a value, as a function's body", () => {
  const bodies = forms("const a = 1;\na + 1;").map((form) => form.split("run(async () => ")[1]);
  expect(bodies).toEqual([
    "(\nconst a = 1;\na + 1\n));\n",
    "{\nconst a = 1;\n\nreturn (a + 1\n);\n});\n",
    "{\nconst a = 1;\na + 1;\n});\n",
  ]);
});

describe("an MCP server", () => {
  let server: McpTestServer;
  beforeAll(async () => {
    server = await startMcp({ token: "secret" });
  });
  afterAll(() => server.close());
  const at = (more = {}) => ({ id: "a", name: "a", url: server.url, token: "secret", ...more });

  test("tells its tools, runs them, and says how they failed", async () => {
    const tools = await listTools(at());
    expect(tools.map(({ name }) => name)).toEqual(["echo", "fail"]);
    expect(tools[0]?.parameters).toMatchObject({ type: "object", required: ["text"] });
    const timeout = 10_000;
    expect(await callTool(at(), "echo", { text: "hi" }, { timeout })).toBe("echo: hi");
    await expect(callTool(at(), "fail", {}, { timeout })).rejects.toThrow("it broke");
    await expect(callTool(at(), "echo", {}, { timeout })).rejects.toThrow(/text/u);
    const last = server.seen.at(-1);
    expect(last?.["mcp-session-id"]).toBeTruthy();
    expect(last?.["mcp-protocol-version"]).toMatch(/^\d{4}-\d\d-\d\d$/u);
  });

  test("is connected to again when it forgot the session", async () => {
    await listTools(at());
    server.forget();
    expect(await callTool(at(), "echo", { text: "again" }, { timeout: 10_000 })).toBe("echo: again");
  });

  test("that refuses or cannot be reached is told apart", async () => {
    const reason = (url: string, token: string) =>
      listTools(at({ url, token })).then(
        () => "none",
        (error: unknown) => (error instanceof McpError ? error.reason : String(error)),
      );
    expect(await reason(server.url, "wrong")).toBe("unauthorized");
    expect(await reason("http://127.0.0.1:9/mcp", "secret")).toBe("unreachable");
  });

  test("that never answers is given up, and asked again the next time", async () => {
    const silent = await startMcp({ silent: true });
    const { url } = silent;
    const late = () => listTools(at({ url }), { limit: 50 });
    try {
      await expect(late()).rejects.toMatchObject({ name: "McpError", reason: "timeout" });
      await expect(late()).rejects.toMatchObject({ reason: "timeout" });
    } finally {
      await silent.close();
    }
    const awake = await startMcp({ port: Number(new URL(url).port), token: "secret" });
    try {
      expect(await listTools(at({ url }))).toHaveLength(2);
    } finally {
      await awake.close();
    }
  });
});
