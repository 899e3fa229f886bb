// Colours, type, spacing, corners and layers come from one file.
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const SOURCE = fileURLToPath(new URL("../src", import.meta.url));
const TOKENS = join(SOURCE, "ui/tokens.css");

function files(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? files(path) : [path];
  });
}

/** Declarations of a style sheet, or of a component's one. */
function declarations(path: string): [property: string, value: string][] {
  const text = readFileSync(path, "utf8");
  const style = path.endsWith(".css") ? text : (/<style>([^]*)<\/style>/u.exec(text)?.[1] ?? "");
  const bare = style.replace(/\/\*[^]*?\*\//gu, "");
  return [...bare.matchAll(/(?<=[{;]\s*)([a-z-]+):\s*([^;{}]+);/gu)].map(([, property = "", value = ""]) => [
    property,
    value.trim(),
  ]);
}

/** What must be a token; relative to the text around it (em), it may be anything. */
const ABSOLUTE = /(?<![\w.-])-?\d*\.?\d+(?:rem|px)\b/u;
const RULES: [kind: string, property: RegExp, own: RegExp][] = [
  ["colour", /./u, /#[\da-f]{3,8}\b|\b(?:rgba?|hsla?|oklch|light-dark)\(/iu],
  ["type", /^font(?:-size)?$/u, ABSOLUTE],
  [
    "spacing",
    /^(?:gap|(?:row|column)-gap|padding|margin)(?:-|$)/u,
    /(?<![\w.-])-?(?:\d*\.)?\d+(?:rem|(?<!\b[12])px)\b/u,
  ],
  ["corners", /^border-radius$/u, /\d(?:rem|px|%)/u],
  ["layers", /^z-index$/u, /\d/u],
  ["motion", /^(?:transition|animation)/u, /\d(?:ms|s)\b/u],
];
const broken = ([property, value]: [string, string]) =>
  RULES.flatMap(([kind, where, own]) => (where.test(property) && own.test(value) ? [kind] : []));

test("what the rules find", () => {
  expect(broken(["color", "#fff"])).toEqual(["colour"]);
  expect(broken(["font-size", "1rem"])).toEqual(["type"]);
  expect(broken(["padding-inline", "var(--space-1) 12px"])).toEqual(["spacing"]);
  expect(broken(["margin", "1px"])).toEqual([]);
  expect(broken(["padding", "0 0.3em"])).toEqual([]);
  expect(broken(["border-radius", "50%"])).toEqual(["corners"]);
  expect(broken(["z-index", "10"])).toEqual(["layers"]);
  expect(broken(["animation", "x 1s"])).toEqual(["motion"]);
});

test("no component has values of its own for what the tokens say", () => {
  const styled = files(SOURCE).filter((path) => /\.(?:svelte|css)$/u.test(path) && path !== TOKENS);
  const all = styled.flatMap((path) => declarations(path).map((one) => ({ path: relative(SOURCE, path), one })));
  // The styles were read at all.
  expect(all.length).toBeGreaterThan(500);
  const own = all.filter(({ one }) => broken(one).length > 0);
  expect(own.map(({ path, one }) => `${path}: ${one.join(": ")}`)).toEqual([]);
});

test("every token that is used exists, and every one that exists is used", () => {
  const known = new Set([...readFileSync(TOKENS, "utf8").matchAll(/^\s*(--[\w-]+):/gmu)].map(([, name]) => name));
  const text = files(SOURCE).map((path) => readFileSync(path, "utf8"));
  const used = new Set([...text.join("\n").matchAll(/var\((--[\w-]+)/gu)].map(([, name]) => name));
  expect([...used].filter((name) => !known.has(name))).toEqual([]);
  expect([...known].filter((name) => !used.has(name))).toEqual([]);
});
