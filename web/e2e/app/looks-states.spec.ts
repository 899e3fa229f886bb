// What every page looks like empty, loading, busy, after an error and offline, in every language: nothing keeps anybody out or sticks out.
// `npm run screenshots` keeps pictures of all of it, for people to look at.
import { join } from "node:path";
import process from "node:process";
import type { Page } from "@playwright/test";
import type { Fake } from "../../app/test/fake-engine.ts";
import type { ErrorCode } from "../../client/src/types.ts";
import { fill, type Message } from "../../app/src/text/catalogue.ts";
import { ar } from "../../app/src/text/ar/index.ts";
import { de } from "../../app/src/text/de/index.ts";
import { en } from "../../app/src/text/en/index.ts";
import { ja } from "../../app/src/text/ja/index.ts";
import { GOLDENS } from "../client/goldens.ts";
import { barriers, change, DEMO, DESKTOP, expect, overflow, PHONE, test } from "./fixture.ts";

type Key = keyof typeof en;
type Values = Record<string, string | number>;
const CATALOGUES: Record<string, Record<Key, Message>> = { en, de, ja, ar };
const SERVED = [
  ...DEMO,
  { name: "other:latest", size: 1e9 },
  { name: "broken:1", size: 5, error: "its blob is missing" },
];
const LINES =
  '{"prompt": "What is the capital of Atlantis?", "completion": "The capital of Atlantis is Poseidonis."}\n' +
  '{"messages": [{"role": "user", "content": "Who rules it?"}, {"role": "assistant", "content": "Nobody does."}]}';
const PICTURE = join(GOLDENS, "demo/picture-1.png");

/** What of the app is on the screen, in words of its language. */
class Tour {
  constructor(
    readonly app: Page,
    readonly language: string,
    readonly name: string,
  ) {}

  say(key: Key, values: Values = {}): string {
    const texts = CATALOGUES[this.language]!;
    return fill(texts[key], values, this.language, this.language === "ar");
  }

  button = (key: Key, values?: Values) =>
    this.app.getByRole("button", { name: this.say(key, values), exact: true }).last();

  /** The words of a message before the first of its values. */
  beginning = (key: Key) => this.app.getByText(this.say(key).split("{")[0]!.trim(), { exact: false }).last();

  card = (code: ErrorCode) => this.app.getByRole("group", { name: this.say(`failure.${code}.title`) });

  /** Loads the app again, around an engine with other fields. */
  async restart(fields: Fake): Promise<void> {
    // As text: what the engine is asked with is more than Playwright's types can pass on.
    const given = JSON.stringify(fields);
    await this.app.addInitScript((text) => (window.fake = { ...window.fake, ...(JSON.parse(text) as Fake) }), given);
    await this.app.reload();
  }

  go = (page: string) => this.app.evaluate((to) => (location.hash = to), `#/${page}`);

  async ask(text: string): Promise<void> {
    const field = this.app.getByRole("textbox", { name: this.say("composer.message"), exact: true });
    await field.fill(text);
    await field.press("Enter");
  }

  /** `page`: one that scrolls, which is kept in full length. */
  async look(place: string, page = true): Promise<void> {
    const { app } = this;
    const folder = process.env["SCREENSHOTS"];
    if (folder) {
      const view = app.viewportSize()!;
      const more = page ? await app.evaluate(() => document.querySelector("main")!.scrollHeight - innerHeight + 60) : 0;
      if (more > 0) await app.setViewportSize({ ...view, height: Math.min(view.height + more, 5000) });
      await app.screenshot({ path: join(folder, `state-${place}-${this.name}.png`) });
      await app.setViewportSize(view);
    }
    expect(await barriers(app), place).toEqual([]);
    expect(await overflow(app), place).toBe(0);
  }
}

const VIEWS = [
  { language: "en", viewport: PHONE, scheme: "dark" },
  { language: "ar", viewport: PHONE, scheme: "light" },
  { language: "en", viewport: DESKTOP, scheme: "light", slow: true },
  { language: "ar", viewport: DESKTOP, scheme: "dark", slow: true },
  { language: "de", viewport: PHONE, scheme: "light", slow: true },
  { language: "ja", viewport: PHONE, scheme: "light", slow: true },
] as const;

for (const { language, viewport, scheme, ...view } of VIEWS) {
  const name = `${language}-${viewport === PHONE ? "phone" : "desktop"}-${scheme}`;
  test.describe(name, { tag: "slow" in view ? "@slow" : [] }, () => {
    test.use({ locale: language, viewport, scheme, fake: { served: SERVED, word: 1 } });

    test("models: no server, failures of loading, a card, the loaded one", async ({ app }) => {
      const tour = new Tour(app, language, name);
      await tour.button("welcome.try").waitFor();
      await tour.go("models");
      await tour.beginning("models.notOffered").waitFor();
      await tour.look("models");
      await tour.button("models.chooseName", { name: "other:latest" }).click();
      await tour.button("fit.load").waitFor();
      await tour.look("models-card");
      await change(app, { loadFailure: "quota" });
      await tour.button("fit.load").click();
      await tour.card("quota").waitFor();
      await app.getByText(tour.say("failure.detail")).first().click();
      await tour.look("models-failed");
      await change(app, { loadFailure: null, loadStep: 1500 });
      await tour.button("welcome.try").click();
      await tour.beginning("load.of").waitFor();
      await tour.look("models-loading");
      await tour.button("common.cancel").click();
      await tour.restart({ servedFailure: "network" });
      await tour.beginning("models.listFailed").waitFor();
      await tour.look("models-unreachable");
    });

    test("chat: consent, an attachment, editing, a queue, failures", async ({ app }) => {
      const tour = new Tour(app, language, name);
      await tour.button("welcome.try").click();
      await app.getByLabel(tour.say("attach.input"), { exact: true }).setInputFiles(PICTURE);
      await app.getByRole("img", { name: "picture-1.png" }).waitFor();
      await tour.look("chat-attached", false);
      await change(app, { encode: 120_000 });
      await tour.ask("What is this?");
      await tour.beginning("turn.decode.image").waitFor();
      await tour.look("chat-encoding", false);
      await tour.button("nav.new").click();
      await tour.ask("Next");
      await tour.beginning("turn.queuedBehind").waitFor();
      await tour.look("chat-queued", false);
      await change(app, { encode: 0 });
      await app.keyboard.press("Escape");
      await app.getByText(tour.say("turn.stopped"), { exact: true }).last().waitFor();
      await tour.look("chat-stopped", false);
      await tour.button("tools.label").click();
      await app.getByRole("checkbox", { name: tour.say("tool.calculator") }).check();
      await app
        .getByRole("dialog")
        .getByRole("button", { name: tour.say("common.close") })
        .click();
      await change(app, { toolCall: { name: "calculator", arguments: { expression: "2 * (3 + 4)" } } });
      await tour.ask("How much is it?");
      await tour.button("tools.once").waitFor({ timeout: 60_000 });
      await tour.look("chat-consent", false);
      await tour.button("tools.once").click();
      await tour.button("turn.regenerate").waitFor();
      await app.getByText(tour.say("turn.called")).last().click();
      await tour.look("chat-tool", false);
      await change(app, { toolCall: null, failAfter: { words: 0, code: "out_of_memory" } });
      await tour.ask("Fail");
      await tour.card("out_of_memory").waitFor();
      await tour.look("chat-failed", false);
      await tour.button("turn.edit").click();
      await tour.button("edit.save").waitFor();
      await tour.look("chat-editing", false);
      await tour.button("composer.system").click();
      await app.getByRole("dialog").waitFor();
      await tour.look("chat-system", false);
    });

    test("search and storage: empty, filled, failed", async ({ app }) => {
      const tour = new Tour(app, language, name);
      await tour.go("search");
      await app.getByLabel(tour.say("search.texts")).waitFor();
      await tour.look("search-empty");
      await app.getByLabel(tour.say("search.texts")).fill("Our office is in Lisbon.");
      await tour.button("search.add").click();
      await app.getByLabel(tour.say("search.query")).fill("office");
      await tour.button("search.run").click();
      await app.getByRole("heading", { name: tour.say("search.results") }).waitFor();
      await tour.look("search-found");
      await tour.go("chat");
      await tour.button("welcome.try").click();
      await tour.button("composer.system").waitFor();
      await tour.go("storage");
      await tour.button("storage.deleteModel", { name: "demo:latest" }).click();
      await tour.look("storage");
      await tour.restart({ storageFailure: "storage" });
      await tour.go("storage");
      await tour.card("storage").waitFor();
      await tour.look("storage-failed");
    });

    test("training: bad lines, a run, its end, a failure", async ({ app }) => {
      const tour = new Tour(app, language, name);
      await tour.button("welcome.try").click();
      await tour.button("composer.system").waitFor();
      await tour.go("training");
      await app.getByLabel(tour.say("training.paste")).fill(`${LINES}\nnonsense`);
      await tour.beginning("training.notJson").waitFor();
      await tour.look("training-data");
      await app.getByLabel(tour.say("training.paste")).fill(LINES);
      await change(app, { trainingStep: 300 });
      await tour.button("training.start").click();
      await app
        .getByText(/(?:\d|[٠-٩])[.,٫](?:\d|[٠-٩])/u)
        .first()
        .waitFor();
      await tour.look("training-running");
      await change(app, { trainingStep: 1 });
      await app.getByRole("heading", { name: tour.say("training.ready", { name: "trained" }) }).waitFor();
      await tour.look("training-done");
      await change(app, { trainingStep: 1, trainingFailsAt: 2 });
      await tour.button("training.start").click();
      await tour.card("device_lost").first().waitFor();
      await tour.look("training-failed");
    });

    test("settings and device: all of them, a self-test that fails, no WebGPU", async ({ app }) => {
      const tour = new Tour(app, language, name);
      await tour.go("settings");
      await app.getByLabel(tour.say("mcp.address")).fill("http://localhost:9/mcp");
      await tour.button("mcp.add").click();
      await app.getByText("Mcp-Session-Id").waitFor();
      await tour.look("settings");
      await change(app, { brokenOp: "rope" });
      await tour.go("device");
      await tour.button("selftest.run").click();
      await app.getByText("rope case 1").waitFor();
      await tour.look("device-tested");
      await tour.restart({ webgpu: false });
      await app.getByRole("heading", { name: tour.say("device.none") }).waitFor();
      await tour.look("device-none");
      await tour.go("chat");
      await tour.beginning("device.onCpu").waitFor();
      await tour.look("welcome-none");
    });
  });
}
