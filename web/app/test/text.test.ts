// The catalogues say the same in every language, and no component has words of its own.
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { parse, type AST } from "svelte/compiler";
import { afterEach, expect, test, vi } from "vitest";
import { fill, placeholders, type Message } from "../src/text/catalogue.js";
import { ar } from "../src/text/ar/index.js";
import { de } from "../src/text/de/index.js";
import { en } from "../src/text/en/index.js";
import { ja } from "../src/text/ja/index.js";
import { choose, listed, speak, t } from "../src/text/index.svelte.js";

const OTHERS: Record<string, Record<string, Message>> = { de, ja, ar };
const ALL = Object.entries({ en, ...OTHERS } as Record<string, Record<string, Message>>);
const SOURCE = fileURLToPath(new URL("../src", import.meta.url));

test("all catalogues have the same keys, in the same form", () => {
  for (const [language, catalogue] of Object.entries(OTHERS)) {
    expect(Object.keys(catalogue), language).toEqual(Object.keys(en));
    for (const [key, message] of Object.entries(en)) expect(typeof catalogue[key], key).toBe(typeof message);
  }
});

test("all messages have the placeholders of the English one", () => {
  for (const [language, catalogue] of ALL) {
    for (const [key, source] of Object.entries(en as Record<string, Message>)) {
      const message = catalogue[key]!;
      const names = placeholders(typeof source === "string" ? source : Object.values(source).join());
      const place = `${language}: ${key}`;
      if (typeof message === "string") {
        expect(placeholders(message), place).toEqual(names);
        continue;
      }
      expect(placeholders(message.other), place).toEqual(names);
      // "One message" needs no number.
      for (const form of Object.values(message))
        expect(names, place).toEqual(expect.arrayContaining(placeholders(form)));
    }
  }
});

test("plurals have the forms of their language", () => {
  for (const [language, catalogue] of ALL) {
    const forms = [...new Intl.PluralRules(language).resolvedOptions().pluralCategories].sort();
    for (const [key, message] of Object.entries(catalogue)) {
      if (typeof message !== "string") expect(Object.keys(message).sort(), `${language}: ${key}`).toEqual(forms);
    }
  }
});

test("messages are translated, but for those that are names", () => {
  for (const [language, catalogue] of Object.entries(OTHERS)) {
    const letters = (message: Message) => JSON.stringify(message).replace(/\{\w+\}|"\w+":/gu, "");
    const same = Object.entries(en as Record<string, Message>).filter(
      ([key, message]) =>
        /\p{L}{2}.*\s.*\p{L}{2}/u.test(letters(message)) && letters(message) === letters(catalogue[key]!),
    );
    expect(
      same.map(([key]) => key),
      language,
    ).toEqual([]);
  }
});

test("numbers are written and counted as the language does", () => {
  const message = { one: "{count} token of {name}", other: "{count} tokens of {name}" };
  expect(fill(message, { count: 1, name: "x" }, "en", false)).toBe("1 token of x");
  expect(fill(message, { count: 1234, name: "x" }, "de", false)).toBe("1.234 tokens of x");
  // Names of another direction do not tear the sentence apart.
  expect(fill("{name}!", { name: "x" }, "ar", true)).toBe("\u2068x\u2069!");
  expect(fill("a https:// b http://localhost: c", {}, "ar", true)).toBe(
    "a \u2066https://\u2069 b \u2066http://localhost\u2069: c",
  );
  expect(fill("{missing}", {}, "en", false)).toBe("{missing}");
});

afterEach(async () => {
  vi.stubGlobal("document", { documentElement: {} });
  await speak("en");
  vi.unstubAllGlobals();
});

test("the browser's languages decide, region or not, until the settings do", async () => {
  expect(choose(["fr", "de-CH", "en"])).toBe("de");
  expect(choose(["fr", "JA"])).toBe("ja");
  expect(choose([])).toBe("en");
  const html = { lang: "", dir: "" };
  vi.stubGlobal("document", { documentElement: html });
  vi.stubGlobal("navigator", { languages: ["ar-EG"] });
  await speak("system");
  expect(html).toEqual({ lang: "ar", dir: "rtl" });
  expect(t("common.cancel")).toBe(ar["common.cancel"]);
  await speak("de");
  expect(html).toEqual({ lang: "de", dir: "ltr" });
  expect(listed(["a", "b", "c"])).toBe("a, b und c");
  // The last choice counts, whichever is loaded first.
  await Promise.all([speak("ja"), speak("en")]);
  expect(html.lang).toBe("en");
  await speak("ja");
  expect(listed(["a 1 GB", "b 2 GB"], "unit")).toBe("a 1 GB、b 2 GB");
});

function files(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? files(path) : [path];
  });
}

/** Attributes and properties whose text people read or hear. */
const READ = new Set("alt aria-label aria-description aria-valuetext help label lead placeholder title".split(" "));
const words = (text: string) => {
  const left = text.replace(/rullama|https?:\S*/gu, "");
  return /\p{L}{2}/u.test(left) ? [text.trim()] : [];
};

type Node = { type: string } & Record<string, unknown>;
const isNode = (value: unknown): value is Node => typeof value === "object" && value !== null && "type" in value;

/** Literal texts of an expression that would be shown: those it may give, not those it compares with or passes on. */
function given(expression: Node): string[] {
  switch (expression.type) {
    case "Literal":
      return typeof expression["value"] === "string" ? words(expression["value"]) : [];
    case "TemplateLiteral":
      return (expression["quasis"] as { value: { raw: string } }[]).flatMap(({ value }) => words(value.raw));
    case "ConditionalExpression":
      return [expression["consequent"], expression["alternate"]].flatMap((one) => given(one as Node));
    case "LogicalExpression":
    case "BinaryExpression":
      return expression["operator"] === "+" || expression["type"] === "LogicalExpression"
        ? [expression["left"], expression["right"]].flatMap((one) => given(one as Node))
        : [];
    default:
      return [];
  }
}

/** Texts in a template that are not from the catalogue. */
function literals(node: unknown): string[] {
  if (Array.isArray(node)) return node.flatMap(literals);
  if (!isNode(node)) return [];
  if (node.type === "Text") return words(String(node["data"]));
  if (node.type === "ExpressionTag" || node.type === "HtmlTag") return given(node["expression"] as Node);
  if (node.type === "Attribute") {
    if (!READ.has(String(node["name"])) || node["value"] === true) return [];
    return literals(Array.isArray(node["value"]) ? node["value"] : [node["value"]]);
  }
  return Object.entries(node).flatMap(([key, value]) =>
    ["expression", "css", "instance", "module", "metadata", "options"].includes(key) ? [] : literals(value),
  );
}

test("no component has words of its own", () => {
  const parsed = (text: string) => literals((parse(text, { modern: true }) as AST.Root).fragment);
  // What the test would find.
  expect(parsed(`<p>Some words</p>`)).toEqual(["Some words"]);
  expect(parsed(`<p>{open ? "Open it" : t("x")}</p>`)).toEqual(["Open it"]);
  expect(parsed(`<A title="Some words" class="some words" />`)).toEqual(["Some words"]);
  expect(parsed("{#if a}<b aria-label={`Remove ${name}`}></b>{/if}")).toEqual(["Remove"]);
  const components = files(SOURCE).filter((path) => path.endsWith(".svelte"));
  const found = components.flatMap((path) =>
    parsed(readFileSync(path, "utf8")).map((text) => `${relative(SOURCE, path)}: ${text}`),
  );
  expect(found).toEqual([]);
  // A busy machine parses all components in some seconds.
}, 30_000);

test("no script shows, says or throws words of its own for people", () => {
  const own =
    /(?:notices\.(?:show|speak)|new (?:Attachment|Import)Error|textContent =|label:)\s*\(?\s*["'`](?=[^"'`]*\p{L}{2})/u;
  expect(own.test('notices.show("Done.")')).toBe(true);
  const scripts = files(SOURCE).filter((path) => /\.(?:svelte|ts)$/u.test(path) && !path.includes("/text/"));
  const found = scripts.filter((path) => {
    // Message keys are no words, and the benchmark page is no part of the app.
    const text = readFileSync(path, "utf8").replace(/label: "[a-z]+\.[\w.]+"/gu, "");
    return !path.endsWith("bench.ts") && own.test(text);
  });
  expect(found.map((path) => relative(SOURCE, path))).toEqual([]);
});
