// Type-checks the examples in the documentation: every block of js or ts in README.md, docs/ and the package's README is a module of its own.
// `model`, `file` and `engine` may be used without being made. Blocks in other languages, and those marked with `<!-- not checked: REASON -->`
// on the line before, are left out.
import { execFileSync } from "node:child_process";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const GIVEN = { model: 'import("rullama").Model', file: "File", engine: 'import("rullama").Engine' };

const web = dirname(dirname(fileURLToPath(import.meta.url)));
const root = dirname(web);
const out = join(web, "node_modules/.cache/docs");
const docs = (await readdir(join(root, "docs"))).filter((name) => name.endsWith(".md"));
const pages = ["README.md", "web/client/README.md", ...docs.map((name) => `docs/${name}`)];

await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
let count = 0;
for (const page of pages) {
  const text = await readFile(join(root, page), "utf8");
  for (const { 0: block, 1: mark, 2: code, index } of text.matchAll(/^(<!-- not checked: .+ -->\n)?```(?:js|ts)\n([^]*?)^```$/gmu)) {
    if (mark) continue;
    const given = Object.entries(GIVEN).filter(([name]) => !new RegExp(`(?:const|let)\\s+(?:${name}\\b|[[{][^=]*\\b${name}\\s*[,}\\]])`, "u").test(code));
    const line = text.slice(0, index).split("\n").length + block.split("\n```")[0].split("\n").indexOf("```") + 1;
    // On one line before the code, so that messages name lines of the block.
    const declared = given.map(([name, type]) => `declare const ${name}: ${type};`).join(" ");
    const name = `${relative(".", page).replaceAll("/", "-").replace(".md", "")}-line-${line}.ts`;
    await writeFile(join(out, name), `${declared}\n${code}\nexport {};\n`);
    count += 1;
  }
}
const compilerOptions = {
  target: "ES2022",
  module: "ESNext",
  moduleResolution: "bundler",
  lib: ["ES2023", "DOM", "DOM.Iterable", "DOM.AsyncIterable"],
  types: [],
  strict: true,
  noEmit: true,
  skipLibCheck: true,
};
await writeFile(join(out, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
try {
  execFileSync(process.execPath, [join(web, "node_modules/typescript/bin/tsc"), "-p", out], { stdio: "inherit" });
} catch {
  console.error("An example in the documentation does not type-check; its file is named after the page and the line where it begins.");
  process.exit(1);
}
console.log(`${count} examples in the documentation type-check`);
