// The Prompt API, installed as `window.LanguageModel`: its IDL and the facts that the web-platform tests check.
import { fileURLToPath } from "node:url";
import { type Rollup, build } from "vite";
import { TestServer } from "../support/server.ts";
import { CLIENT, MODEL, expect, test } from "./fixtures.ts";

async function bundle(): Promise<string> {
  const entry = fileURLToPath(new URL("prompt-api-page.ts", import.meta.url));
  const lib = { entry, formats: ["es" as const], fileName: "facts" };
  const options = {
    configFile: false as const,
    logLevel: "error" as const,
    build: { write: false, lib, minify: false },
  };
  const built = (await build(options)) as Rollup.RollupOutput[];
  const chunks = built.flatMap(({ output }) => output).filter((one) => one.type === "chunk");
  return chunks.find(({ isEntry }) => isEntry)!.code;
}

test("the Prompt API is what the web-platform tests check", async ({ client, server }) => {
  server.script("/facts.js", await bundle());
  const found = await client.evaluate(async () => {
    const load = (path: string) => import(path);
    const api = (await load("/rullama/prompt-api/index.js")) as typeof import("../../client/src/prompt-api/index.js");
    const { echo, failedFacts, idlFailures } = (await load("/facts.js")) as typeof import("./prompt-api-page.ts");
    const installed = [api.install({ force: true }), api.install()];
    const model = echo();
    const LanguageModel = api.languageModelOf({ availability: async () => "available", load: async () => model });
    const idlOfInstalled = await idlFailures(await LanguageModel.create()).then((all) => [...all]);
    Object.defineProperty(window, "LanguageModel", {
      value: LanguageModel,
      writable: true,
      configurable: true,
      enumerable: false,
    });
    const idl = await idlFailures(await LanguageModel.create());
    return { installed, idlOfInstalled, idl, facts: await failedFacts() };
  });
  expect(found).toEqual({ installed: [true, false], idlOfInstalled: [], idl: [], facts: [] });
});

test("the Prompt API holds replies to regular expressions and schemas", async ({ client }) => {
  const wrong = await client.evaluate(async () => {
    const load = (path: string) => import(path);
    const api = (await load("/rullama/prompt-api/index.js")) as typeof import("../../client/src/prompt-api/index.js");
    const model = await sharedModel("worker");
    const LanguageModel = api.languageModelOf({ availability: async () => "available", load: async () => model });
    const wrong: string[] = [];
    const patterns = [/^[a-z]$/, /^\d{4}-\d{2}-\d{2}$/, /^(?:yes|no)$/i];
    for (const pattern of patterns) {
      const session = await LanguageModel.create();
      const reply = await session.prompt("x", { responseConstraint: pattern }).catch((error: Error) => error);
      if (typeof reply !== "string" || !pattern.test(reply)) wrong.push(`${pattern}: ${String(reply)}`);
    }
    const begun = (prefix: string) => [
      { role: "user" as const, content: "x" },
      { role: "assistant" as const, content: prefix, prefix: true },
    ];
    const greeting = { responseConstraint: /^Greetings and salutations.{0,3}$/ };
    const session = await LanguageModel.create();
    const rest = await session.prompt(begun("Greetings"), greeting);
    if (!greeting.responseConstraint.test(`Greetings${String(rest)}`))
      wrong.push(`the prefix goes on with ${String(rest)}`);
    const refused = await session.prompt(begun("invalid"), greeting).catch((error: Error) => error.name);
    if (refused !== "NotSupportedError") wrong.push(`a wrong prefix: ${String(refused)}`);
    const rating = { type: "integer", minimum: 0, maximum: 5 };
    const schema = {
      type: "object",
      required: ["Rating"],
      additionalProperties: false,
      properties: { Rating: rating },
    };
    const prefix = '{ "Rating": ';
    const reply = await session.prompt(begun(prefix), {
      responseConstraint: schema,
      omitResponseConstraintInput: true,
    });
    const { Rating } = JSON.parse(prefix + String(reply)) as { Rating: number };
    if (!(Rating >= 0 && Rating <= 5)) wrong.push(String(reply));
    return wrong;
  });
  expect(wrong).toEqual([]);
});

test("the Prompt API is installed in windows of secure contexts alone", async ({ client, server }) => {
  server.script(
    "/install-worker.js",
    `
    const { install } = await import("/rullama/prompt-api/index.js");
    postMessage([install(), "LanguageModel" in self]);`,
  );
  const found = await client.evaluate(() => {
    const worker = new Worker("/install-worker.js", { type: "module" });
    return new Promise<unknown>((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = reject;
    });
  });
  expect(found).toEqual([false, false]);
});

test("sessions of a model without encoders take no images", async ({ client }) => {
  const found = await client.evaluate(async (source) => {
    const load = (path: string) => import(path);
    const api = (await load("/rullama/prompt-api/index.js")) as typeof import("../../client/src/prompt-api/index.js");
    const file = new File([await (await fetch(source)).arrayBuffer()], "m.gguf");
    api.useModel(file, { context: 128 });
    const options = { expectedInputs: [{ type: "image" as const }] };
    return [await api.LanguageModel.availability(), await api.LanguageModel.availability(options)];
  }, MODEL);
  expect(found).toEqual(["available", "unavailable"]);
});

/** A page for iframes: its class has a model that repeats its input, and it answers questions of the page around it. */
const FRAME = `<!doctype html><meta charset="utf-8"><title>frame</title><script type="module">
const [{ languageModelOf }, { echo }] = await Promise.all([import("/rullama/prompt-api/index.js"), import("/facts.js")]);
globalThis.LanguageModel = languageModelOf({ availability: async () => "available", load: async () => echo() });
globalThis.onmessage = async () => {
  const made = await LanguageModel.create().then(() => "made", (error) => error.name);
  parent.postMessage({ availability: await LanguageModel.availability(), made }, "*");
};
parent.postMessage("ready", "*");
</script>`;

test("iframes that were removed have no sessions", async ({ client, server }) => {
  server.script("/facts.js", await bundle());
  server.html("/frame", FRAME);
  const found = await client.evaluate(async () => {
    const frame = document.createElement("iframe");
    frame.src = "/frame";
    const ready = new Promise((resolve) => addEventListener("message", resolve, { once: true }));
    document.body.append(frame);
    await ready;
    const inside = frame.contentWindow as unknown as typeof globalThis;
    const { LanguageModel, DOMException } = inside;
    const session = await LanguageModel.create();
    session.prompt("Hello").catch(() => {});
    frame.remove();
    // Jobs of a window that is gone do not run, so that `await` would not end.
    const nameOf = (promise: Promise<unknown>) =>
      new Promise((resolve) =>
        promise.then(
          () => resolve("nothing"),
          (error: Error) => resolve(error instanceof DOMException ? error.name : String(error)),
        ),
      );
    const thrown = () => {
      try {
        session.promptStreaming("x");
      } catch (error) {
        return (error as Error).name;
      }
      return "nothing";
    };
    const names = {
      availability: await nameOf(LanguageModel.availability()),
      create: await nameOf(LanguageModel.create()),
      prompt: await nameOf(session.prompt("x")),
      promptStreaming: thrown(),
      append: await nameOf(session.append("x")),
      measureContextUsage: await nameOf(session.measureContextUsage("x")),
      clone: await nameOf(session.clone()),
    };
    session.destroy();
    return { names, types: [typeof session.contextUsage, typeof session.contextWindow] };
  });
  expect(new Set(Object.values(found.names))).toEqual(new Set(["InvalidStateError"]));
  expect(found.types).toEqual(["number", "number"]);
});

test("iframes of other origins need the permissions policy, where the browser has it", async ({ client, server }) => {
  const facts = await bundle();
  const other = await TestServer.start({ folders: { "/rullama/": CLIENT }, cors: true });
  for (const one of [server, other]) {
    one.script("/facts.js", facts);
    one.html("/frame", FRAME);
  }
  const found = await client.evaluate(async (far) => {
    const ask = async (src: string, allow: string) => {
      const frame = document.createElement("iframe");
      Object.assign(frame, { src, allow });
      const next = () =>
        new Promise<unknown>((resolve) => addEventListener("message", ({ data }) => resolve(data), { once: true }));
      const ready = next();
      document.body.append(frame);
      await ready;
      frame.contentWindow!.postMessage("ask", "*");
      const answer = await next();
      frame.remove();
      return answer;
    };
    const { featurePolicy } = document as unknown as { featurePolicy?: { features(): string[] } };
    return {
      isKnown: featurePolicy?.features().includes("language-model") ?? false,
      same: await ask("/frame", ""),
      denied: await ask(far, ""),
      allowed: await ask(far, "language-model"),
    };
  }, `${other.origin}/frame`);
  await other.close();
  console.log(`the permissions policy of language models is ${found.isKnown ? "known" : "not known"} here`);
  const available = { availability: "available", made: "made" };
  const denied = found.isKnown ? { availability: "unavailable", made: "NotAllowedError" } : available;
  expect(found).toMatchObject({ same: available, denied, allowed: available });
});

test("garbage collection leaves replies alone, and takes sessions that nobody has", async ({ client, server }) => {
  server.script("/facts.js", await bundle());
  await client.evaluate(async () => {
    const load = (path: string) => import(path);
    const api = (await load("/rullama/prompt-api/index.js")) as typeof import("../../client/src/prompt-api/index.js");
    const { echo } = (await load("/facts.js")) as typeof import("./prompt-api-page.ts");
    const model = echo();
    let goOn = () => {};
    const collected = new Promise<void>((resolve) => (goOn = resolve));
    const { chat } = model;
    model.chat = async function* (...all) {
      await collected;
      yield* chat(...all);
    };
    const LanguageModel = api.languageModelOf({ availability: async () => "available", load: async () => model });
    const stream = (await LanguageModel.create()).promptStreaming("streamed") as unknown as AsyncIterable<string>;
    const drain = async () => {
      let text = "";
      for await (const chunk of stream) text += chunk;
      return text;
    };
    const replies = Promise.all([LanguageModel.create().then((session) => session.prompt("whole")), drain()]);
    // The signal is the page's, and outlives the session.
    const { signal } = new AbortController();
    const unused = new WeakRef(await LanguageModel.create({ signal }));
    Object.assign(globalThis, { collection: { goOn, replies, signal, unused } });
  });
  type Collection = { goOn: () => void; replies: Promise<string[]>; unused: WeakRef<object> };
  const isGone = async () => {
    await client.requestGC();
    return client.evaluate(
      () => (globalThis as unknown as { collection: Collection }).collection.unused.deref() === undefined,
    );
  };
  await expect.poll(isGone).toBe(true);
  const replies = await client.evaluate(() => {
    const { goOn, replies } = (globalThis as unknown as { collection: Collection }).collection;
    goOn();
    return replies;
  });
  expect(replies).toEqual(["whole.", "streamed."]);
});
