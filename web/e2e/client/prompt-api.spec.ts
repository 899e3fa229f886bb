// The Prompt API, installed as `window.LanguageModel`: its IDL and the facts that the web-platform tests check.
import { fileURLToPath } from "node:url";
import { type Rollup, build } from "vite";
import { MODEL, expect, test } from "./fixtures.ts";

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
