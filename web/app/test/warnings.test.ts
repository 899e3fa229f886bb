import { expect, test, vi } from "vitest";
import { fit } from "../../client/src/fit.js";
import { warningText } from "../src/lib/warnings.js";
import { speak } from "../src/text/index.svelte.js";

const device = { webgpu: true, fallback: false, features: [], limits: {} };

test("every warning of the package is told in the language of the app", async () => {
  vi.stubGlobal("document", { documentElement: {} });
  await speak("de");
  const warnings = [
    fit({ gpu: 3.6e9 }, device, {}, undefined),
    fit({ gpu: 3.6e9 }, device, {}, 4),
    fit({ gpu: 1e9 }, { ...device, fallback: true }, {}, undefined),
    fit({ gpu: 3e8 }, { ...device, webgpu: false }, {}, undefined),
    fit({ gpu: 2e9 }, { ...device, webgpu: false }, {}, undefined),
    fit({ gpu: 9e9 }, { ...device, webgpu: false }, {}, undefined),
  ].flatMap((report) => report.warnings);
  expect(warnings.map(warningText)).toEqual([
    expect.stringMatching(/3,6\sGB GPU-Speicher/u),
    expect.stringMatching(/4,0\sGB Speicher/u),
    expect.stringContaining("Keine GPU gefunden"),
    "Es läuft auf der CPU: Mit einer GPU wäre es schneller.",
    expect.stringContaining("langsamer als man liest"),
    expect.stringMatching(/9,0\sGB Speicher; auf der CPU hat eine Seite 3,5\sGB/u),
  ]);
  expect(warningText("Something else.")).toBe("Something else.");
  await speak("en");
  vi.unstubAllGlobals();
});
