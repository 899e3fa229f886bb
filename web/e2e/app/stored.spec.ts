// What the browser stores for the app: asked to keep it, unfinished downloads, names, and attachments in a store of their own.
import { DEMO, expect, letPersist, start, test } from "./fixture.ts";

test.use({ fake: { served: DEMO } });

test("a model that is kept makes the app ask the browser to keep it, once", async ({ app }) => {
  await letPersist(app, "denied");
  await app.evaluate(() => {
    const { persist } = navigator.storage;
    const answers: boolean[] = [];
    Object.assign(globalThis, { answers });
    navigator.storage.persist = async () => {
      const granted = await persist.call(navigator.storage);
      answers.push(granted);
      return granted;
    };
  });
  await start(app);
  const answers = () => app.evaluate(() => (globalThis as unknown as { answers: boolean[] }).answers);
  await expect.poll(answers).toEqual([false]);
  await app.getByRole("link", { name: "Storage" }).click();
  await expect(app.getByText("The browser may delete this when the disk is full.")).toBeVisible();
  expect(await answers()).toEqual([false]);
});

test("unfinished downloads and files of addresses are told apart", async ({ app }) => {
  await app.evaluate(() => {
    const one = { id: "a", bytes: 4e9, added: 1, used: Date.now() };
    const source = "https://example.com/gemma4:e2b";
    const forged = { ...one, name: "demo:latest", names: [], source, have: 4e9, complete: true };
    const cut = { ...one, id: "b", name: "cut:1", names: ["cut:1"], source: "cut:1", have: 1e9, complete: false };
    localStorage.setItem("fake-stored-models", JSON.stringify([forged, cut]));
  });
  await app.getByRole("link", { name: "Storage" }).click();
  const unfinished = app.getByRole("region", { name: "Unfinished downloads" });
  await expect(unfinished).toContainText("cut:1");
  await expect(unfinished).toContainText("1.0 GB of 4.0 GB downloaded");
  await expect(app.getByRole("region", { name: "Models", exact: true })).not.toContainText("cut:1");
  await app.getByRole("link", { name: "Models" }).click();
  // The one that is served is not here, whatever a file calls itself.
  await expect(app.getByRole("region", { name: "From this server" })).not.toContainText("kept here");
  await expect(app.getByRole("region", { name: "Kept in this browser" })).toContainText(
    "https://example.com/gemma4:e2b",
  );
});
