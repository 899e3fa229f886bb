import { describe, expect, it } from "vitest";
import { Queue } from "../src/queue.js";

/** A job that ends when it is told to. */
function job(log: string[], name: string) {
  let end = () => {};
  const ended = new Promise<void>((resolve) => (end = resolve));
  const run = async () => {
    log.push(`${name} begins`);
    await ended;
    log.push(`${name} ends`);
    return name;
  };
  return { run, end };
}

describe("Queue", () => {
  it("runs one thing after the other, whatever becomes of them", async () => {
    const [log, queue] = [[] as string[], new Queue()];
    const [a, b] = [job(log, "a"), job(log, "b")];
    const first = queue.run(a.run);
    const broken = queue.run(() => Promise.reject(new Error("broken")));
    const second = queue.run(b.run);
    b.end();
    a.end();
    await expect(broken).rejects.toThrow("broken");
    expect(await Promise.all([first, second])).toEqual(["a", "b"]);
    expect(log).toEqual(["a begins", "a ends", "b begins", "b ends"]);
  });

  it("forgets what is aborted while it waits, and keeps the order of the others", async () => {
    const [log, queue] = [[] as string[], new Queue()];
    const [a, b, c] = [job(log, "a"), job(log, "b"), job(log, "c")];
    const controller = new AbortController();
    const first = queue.run(a.run);
    const second = queue.run(b.run, controller.signal);
    const third = queue.run(c.run);
    controller.abort();
    // It gives up at once, before the first has ended.
    await expect(second).rejects.toMatchObject({ code: "cancelled" });
    c.end();
    a.end();
    await Promise.all([first, third]);
    expect(log).toEqual(["a begins", "a ends", "c begins", "c ends"]);
  });
});
