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

type Job = ReturnType<typeof job>;

/** After everything that needs no timer. */
const settled = () => new Promise((resolve) => setTimeout(resolve));

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

  it("shares with other keys, and runs others alone", async () => {
    const [log, queue] = [[] as string[], new Queue()];
    const [a, b, c, d, e] = ["a", "b", "c", "d", "e"].map((name) => job(log, name)) as [Job, Job, Job, Job, Job];
    const all = [
      queue.share(a.run, 1),
      queue.share(b.run, 2),
      queue.share(c.run, 1),
      queue.run(d.run),
      queue.share(e.run),
    ];
    await settled();
    expect(log).toEqual(["a begins", "b begins"]);
    a.end();
    await all[0];
    await settled();
    expect(log.slice(2)).toEqual(["a ends", "c begins"]);
    c.end();
    e.end();
    await all[2];
    await settled();
    // The fourth waits for all shared ones before it, and the fifth for the fourth.
    expect(log.slice(4)).toEqual(["c ends"]);
    b.end();
    d.end();
    await Promise.all(all);
    expect(log.slice(5)).toEqual(["b ends", "d begins", "d ends", "e begins", "e ends"]);
  });

  it("keeps the order of a key where one gives up", async () => {
    const [log, queue] = [[] as string[], new Queue()];
    const [a, b, c] = [job(log, "a"), job(log, "b"), job(log, "c")];
    const controller = new AbortController();
    const first = queue.share(a.run, 1);
    const second = queue.share(b.run, 1, controller.signal);
    const third = queue.share(c.run, 1);
    controller.abort();
    await expect(second).rejects.toMatchObject({ code: "cancelled" });
    c.end();
    await settled();
    expect(log).toEqual(["a begins"]);
    a.end();
    await Promise.all([first, third]);
    expect(log).toEqual(["a begins", "a ends", "c begins", "c ends"]);
  });
});
