import { expect, it } from "vitest";
import { pollWhile } from "../src/poll-device.js";

const pause = (ms: number) => new Promise<void>((done) => setTimeout(done, ms));
const never = () => false;

/** A device that counts what it is asked, and how much of that at a time. */
function counting(answer: () => Promise<null> = () => pause(1).then(() => null)) {
  const device = {
    asked: 0,
    open: 0,
    most: 0,
    pushErrorScope: () => void device.asked++,
    popErrorScope: async () => {
      device.most = Math.max(device.most, ++device.open);
      return answer().finally(() => device.open--);
    },
  };
  return device;
}

/** Nothing is asked any more. */
async function stopped(device: { asked: number }): Promise<void> {
  const { asked } = device;
  await pause(20);
  expect(device.asked).toBe(asked);
}

it("asks again and again until the work is done, one thing at a time", async () => {
  const device = counting();
  const work = pause(30).then(() => "seen");
  expect(await pollWhile(device, work, never)).toBe("seen");
  expect(device.asked).toBeGreaterThan(1);
  expect(device.most).toBe(1);
  await stopped(device);
});

it("passes a failure on and stops, too", async () => {
  const device = counting();
  const failing = pause(10).then(() => Promise.reject(new Error("lost")));
  await expect(pollWhile(device, failing, never)).rejects.toThrow("lost");
  await stopped(device);
});

it("stops when it is in vain", async () => {
  const device = counting();
  let vain = false;
  void pollWhile(device, new Promise(() => {}), () => vain);
  await pause(10);
  expect(device.asked).toBeGreaterThan(0);
  vain = true;
  await stopped(device);
});

it("stops after a while, whatever happens", async () => {
  const device = counting();
  void pollWhile(device, new Promise(() => {}), never);
  await pause(130);
  await stopped(device);
});

it("waits on where the device has no answers", async () => {
  const device = counting(() => Promise.reject(new Error("lost")));
  expect(
    await pollWhile(
      device,
      pause(10).then(() => "seen"),
      never,
    ),
  ).toBe("seen");
  expect(device.asked).toBe(1);
});
