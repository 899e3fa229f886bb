// A model with released weights, from its file to the answer; `cargo xtask real-model` fetches SmolLM2-135M-Instruct and names its file.
import process from "node:process";
import { expect, test } from "./real.ts";

const MODEL = process.env["RULLAMA_REAL_MODEL"];

test("SmolLM2 knows the capital of France", { tag: "@slow" }, async ({ real }) => {
  test.skip(MODEL === undefined, "no model: `cargo xtask real-model` fetches it and sets RULLAMA_REAL_MODEL");
  const { page } = real;
  await page.evaluate(() => (location.hash = "#/settings"));
  // "The capital of France is Paris." A software GPU takes many seconds for each token.
  await page.getByLabel("Max tokens").fill("8");
  await page.getByLabel("Max tokens").blur();
  await page.evaluate(() => (location.hash = "#/models"));
  await page.getByLabel("Open GGUF file").setInputFiles(MODEL ?? "");
  await page.getByRole("button", { name: "Load", exact: true }).click();
  await real.ready();
  await real.newConversation();
  expect(await real.ask("What is the capital of France?")).toContain("Paris");
});
