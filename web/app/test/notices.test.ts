import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { removePrompt, savePrompt } from "../src/state/prompts.js";
import { notices } from "../src/state/notices.svelte.js";
import { settings } from "../src/state/settings.svelte.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("what can be undone stays longer than other notices, and goes, too", () => {
  savePrompt("Summarise this text.", "Sum");
  removePrompt(settings.prompts[0]!);
  expect(notices.list).toHaveLength(2);
  vi.advanceTimersByTime(20_000);
  expect(notices.list).toHaveLength(1);
  notices.list[0]?.action?.run();
  expect(settings.prompts.map(({ name }) => name)).toEqual(["Sum"]);
  vi.advanceTimersByTime(60_000);
  expect(notices.list).toEqual([]);
});
