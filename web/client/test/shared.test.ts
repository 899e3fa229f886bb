// One engine for all tabs: tabs of this test have locks and channels of a browser in common.
import { afterEach, describe, expect, it } from "vitest";
import { InterruptedError, pack } from "../src/errors.js";
import { Model } from "../src/model.js";
import { SharedTransport, type TabTools } from "../src/shared/transport.js";
import type { CallOptions, Kind, Transport } from "../src/protocol.js";
import type { GenerateEvent, ModelInfo, Progress } from "../src/types.js";
import { USAGE } from "./fake-model.js";

/** Locks as a browser has them: exclusive, in the order of requests. */
function lockManager(): TabTools["locks"] {
  const tails = new Map<string, Promise<unknown>>();
  const request = (name: string, { signal }: { signal?: AbortSignal }, work: () => unknown) => {
    const before = tails.get(name) ?? Promise.resolve();
    const run = before.then(() => {
      if (signal?.aborted) throw new DOMException("aborted", "AbortError");
      return work();
    });
    tails.set(
      name,
      run.catch(() => {}),
    );
    return run;
  };
  return { request } as unknown as TabTools["locks"];
}

const until = async (done: () => boolean) => {
  for (let tries = 0; tries < 200 && !done(); tries++) await new Promise((resolve) => setTimeout(resolve, 5));
  expect(done()).toBe(true);
};

/** Engines that were opened, and what they were asked. */
function browser() {
  const locks = lockManager();
  const log: string[] = [];
  const engines: { lose: (error: Error) => void }[] = [];
  const tabs: SharedTransport[] = [];
  const name = crypto.randomUUID();
  const open = (tab: string) => (): Transport => {
    let next = 1;
    let lose = (_error: Error) => {};
    const lost = new Promise<Error>((resolve) => (lose = resolve));
    engines.push({ lose });
    log.push(`open ${tab}`);
    const call = async (kind: Kind, params: unknown, { onEvent, signal }: CallOptions<Kind> = {}): Promise<unknown> => {
      const { source, model, session } = (params ?? {}) as { source?: string; model?: number; session?: number };
      if (kind === "load") {
        log.push(`load ${source}`);
        (onEvent as ((event: Progress) => void) | undefined)?.({ phase: "load" } as Progress);
        await new Promise((resolve) => setTimeout(resolve, source === "slow" ? 1000 : 10));
        return { model: next++, info: { name: source } as ModelInfo };
      }
      if (kind === "lost") return pack(await lost);
      if (kind === "verified") return undefined;
      if (kind === "session") return next++;
      if (kind === "memory") return { gpu: 7, wasmHeap: 0, sessions: 0 };
      if (kind === "answer") {
        for (const text of ["a", "b", "c"]) {
          (onEvent as (event: GenerateEvent) => void)({ type: "text", text });
          await new Promise((resolve) => setTimeout(resolve, 20));
          if (signal?.aborted) log.push("aborted");
          if (signal?.aborted)
            return (onEvent as (event: GenerateEvent) => void)({ type: "done", finish: "cancelled", usage: USAGE });
        }
        return (onEvent as (event: GenerateEvent) => void)({ type: "done", finish: "stop", usage: USAGE });
      }
      log.push([kind, model, session].filter((one) => one !== undefined).join(" "));
      return undefined;
    };
    return { call: call as Transport["call"], close: () => log.push(`close ${tab}`), alive: true };
  };
  const tab = (title: string) => {
    const transport = new SharedTransport(open(title), name, { locks, channel: (of) => new BroadcastChannel(of) });
    tabs.push(transport);
    const load = async (source: string, options: object = {}, call: CallOptions<"load"> = {}) => {
      const { model, info } = await transport.call("load", { source, options: { table: "fits", ...options } }, call);
      return new Model(transport, model, info);
    };
    return { transport, load };
  };
  return { tab, log, engines, tabs };
}

let opened: SharedTransport[] = [];
afterEach(() => opened.splice(0).forEach((tab) => tab.close()));

const text = async (model: Model, signal?: AbortSignal) => {
  let said = "";
  for await (const event of model.chat([{ role: "user", content: "x" }], signal ? { signal } : {})) {
    if (event.type === "text") said += event.text;
    if (event.type === "done" && event.finish !== "stop") said += ` ${event.finish}`;
  }
  return said;
};

describe("tabs that share an engine", () => {
  it("open one, load a model once, and free it with the last one", async () => {
    const { tab, log, tabs } = browser();
    opened = tabs;
    const [one, two] = [tab("one"), tab("two")];
    const progress: string[] = [];
    const onEvent = ({ phase }: Progress) => void progress.push(phase);
    const [a, b] = await Promise.all([one.load("m"), two.load("m", {}, { onEvent })]);
    expect(log).toEqual(["open one", "load m"]);
    expect(await Promise.all([text(a), text(b)])).toEqual(["abc", "abc"]);
    expect(await b.memory()).toMatchObject({ gpu: 7, tabs: 2 });
    await a.free();
    expect(await text(b)).toBe("abc");
    expect(await b.memory()).toMatchObject({ tabs: 1 });
    await two.load("other", { context: 9 });
    await b.free();
    expect(log.slice(2)).toEqual(["load other", "freeModel 1"]);
  });

  it("cancel their own calls alone", async () => {
    const { tab, log, tabs } = browser();
    opened = tabs;
    const [one, two] = [tab("one"), tab("two")];
    const [a, b] = await Promise.all([one.load("m"), two.load("m")]);
    const stop = new AbortController();
    const replies = Promise.all([text(a), text(b, stop.signal)]);
    setTimeout(() => stop.abort(), 25);
    const [whole, cut] = await replies;
    expect(whole).toBe("abc");
    expect(cut).toContain("cancelled");
    expect(log.filter((line) => line === "aborted")).toHaveLength(1);
  });

  it("take over when the owner closes; calls under way fail and can be repeated", async () => {
    const { tab, log, tabs } = browser();
    opened = tabs;
    const [one, two, three] = [tab("one"), tab("two"), tab("three")];
    await one.load("m");
    const [b, c] = await Promise.all([two.load("m"), three.load("m")]);
    const running = text(c);
    running.catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 15));
    one.transport.close();
    await expect(running).rejects.toBeInstanceOf(InterruptedError);
    expect(await b.lost).toMatchObject({ code: "interrupted", canRetry: true });
    expect(await c.lost).toMatchObject({ code: "interrupted" });
    await expect(text(b)).rejects.toMatchObject({ code: "interrupted" });
    const again = await Promise.all([two.load("m"), three.load("m")]);
    expect(await Promise.all(again.map((model) => text(model)))).toEqual(["abc", "abc"]);
    expect(log.filter((line) => /^(?:open|load|close)/u.test(line))).toEqual([
      "open one",
      "load m",
      "close one",
      "open two",
      "load m",
    ]);
  });

  it("free what a tab had that is gone", async () => {
    const { tab, log, tabs } = browser();
    opened = tabs;
    const [one, two] = [tab("one"), tab("two")];
    const a = await one.load("m");
    const b = await two.load("m");
    await b.session();
    const only = await two.load("only theirs");
    expect(only.info.name).toBe("only theirs");
    two.transport.close();
    await until(() => log.some((line) => line.startsWith("freeModel")));
    expect(log).toContain("freeSession 1 2");
    expect(log).toContain("freeModel 3");
    expect(await a.memory()).toMatchObject({ tabs: 1 });
    expect(await text(a)).toBe("abc");
  });

  it("load anew when the device was lost, or the load failed for nobody else", async () => {
    const { tab, log, engines, tabs } = browser();
    opened = tabs;
    const [one, two] = [tab("one"), tab("two")];
    const [a, b] = await Promise.all([one.load("m"), two.load("m")]);
    engines[0]!.lose(new Error("gone"));
    expect([(await a.lost).message, (await b.lost).message]).toEqual(["gone", "gone"]);
    await two.load("m");
    expect(log.filter((line) => line === "load m")).toHaveLength(2);
    const stop = new AbortController();
    const cancelled = two.load("slow", {}, { signal: stop.signal });
    setTimeout(() => stop.abort(), 2);
    await expect(cancelled).rejects.toMatchObject({ code: "cancelled" });
  });
});
