// What the document of a page allows the Prompt API.
import { afterEach, describe, expect, it, vi } from "vitest";
import { languageModelOf } from "../src/prompt-api/index.js";
import { fakeModel } from "./fake-model.js";

const api = () => languageModelOf({ availability: async () => "available", load: async () => fakeModel() });
const named = (name: string) => expect.objectContaining({ name });

afterEach(() => vi.unstubAllGlobals());

describe("the document", () => {
  it("may be denied it by the permissions policy", async () => {
    const featurePolicy = { features: () => ["language-model"], allowsFeature: () => false };
    vi.stubGlobal("document", { defaultView: {}, featurePolicy });
    expect(await api().availability()).toBe("unavailable");
    await expect(api().create()).rejects.toEqual(named("NotAllowedError"));
    // A browser without this policy.
    vi.stubGlobal("document", { defaultView: {}, featurePolicy: { ...featurePolicy, features: () => ["camera"] } });
    expect(await api().availability()).toBe("available");
  });

  it("must be active", async () => {
    const LanguageModel = api();
    const session = await LanguageModel.create();
    vi.stubGlobal("document", { defaultView: null });
    const outcomes = await Promise.allSettled([
      LanguageModel.availability(),
      LanguageModel.create(),
      session.prompt("x"),
      session.append("x"),
      session.measureContextUsage("x"),
      session.clone(),
    ]);
    const rejected = { status: "rejected", reason: named("InvalidStateError") };
    expect(outcomes).toEqual(outcomes.map(() => rejected));
    expect(() => session.promptStreaming("x")).toThrow("not active");
    session.destroy();
    expect(session.contextUsage).toBe(0);
  });
});
