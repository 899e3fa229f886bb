import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { throttle } from "../src/lib/throttle.js";
import * as format from "../src/lib/format.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("works at once, then once per interval, and never forgets the last call", () => {
  const work = vi.fn();
  const call = throttle(100, work, () => Date.now());
  call();
  call();
  call();
  expect(work).toHaveBeenCalledTimes(1);
  vi.advanceTimersByTime(100);
  expect(work).toHaveBeenCalledTimes(2);
  vi.advanceTimersByTime(500);
  expect(work).toHaveBeenCalledTimes(2);
  call();
  call();
  call.flush();
  call.flush();
  expect(work).toHaveBeenCalledTimes(4);
});

test("a timer that is held back does not hold back the work", () => {
  const work = vi.fn();
  let now = 0;
  const call = throttle(100, work, () => now);
  call();
  call();
  now = 150;
  call();
  expect(work).toHaveBeenCalledTimes(2);
});

test("numbers for people", () => {
  expect(["0 bytes", "999 bytes", "1.0 kB", "1.0 MB", "3.6 GB", "128 MB"]).toEqual(
    [0, 999, 1000, 999_999, 3_600_000_000, 128_000_000].map(format.bytes),
  );
  expect(format.bytes(Number.NaN)).toBe("?");
  expect([0.04, 3.24, 59.7, 80, 7300].map(format.duration)).toEqual(["40ms", "3.2s", "1m 0s", "1m 20s", "2h 2m"]);
  expect([5_100_000_000, 270_000_000, 1500, 12].map(format.count)).toEqual(["5.1B", "270M", "1.5K", "12"]);
});
