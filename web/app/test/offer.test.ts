import { types } from "node:util";
import { expect, it, vi } from "vitest";

// A browser whose engine takes every file for a model, but those named like projectors.
vi.stubGlobal("window", {});
vi.mock("rullama", () => ({
  openEngine: () => ({
    inspect: async ({ name }: File) => {
      if (name.startsWith("mmproj")) throw Object.assign(new Error("no model"), { code: "projector" });
    },
  }),
}));

const { picked } = await import("../src/state/catalogue.svelte.js");
const { offer } = await import("../src/state/offer.js");

const file = (name: string) => new File(["x"], name);

it("offers all parts of a split model together, with their projector", async () => {
  const [one, two, projector] = [file("m-00001-of-00002.gguf"), file("m-00002-of-00002.gguf"), file("mmproj-F16.gguf")];
  await offer([one, projector, two]);
  expect(picked.choice).toEqual({
    source: [one, two],
    name: one.name,
    projector: { source: projector, name: projector.name },
  });
  // What a proxy stands for could not be sent to the engine's worker.
  expect(types.isProxy(picked.choice?.source)).toBe(false);
  await offer([file("a.gguf"), file("b.gguf")]);
  expect(picked.choice).toMatchObject({ name: "a.gguf", source: expect.any(File) });
});
