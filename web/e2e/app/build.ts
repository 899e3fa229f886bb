// Builds the app around its made-up engine when it changed since the last time.
import { execFileSync } from "node:child_process";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const APP = fileURLToPath(new URL("../../app", import.meta.url));
const SOURCES = ["src", "test", "public", "index.html", "vite.config.ts", "policy.ts", "package.json"];

function newest(path: string): number {
  const info = statSync(path);
  if (!info.isDirectory()) return info.mtimeMs;
  return Math.max(info.mtimeMs, ...readdirSync(path).map((name) => newest(join(path, name))));
}

/** The folder of the built app. */
export function builtApp(): string {
  const built = join(APP, "dev-dist");
  const changed = Math.max(...SOURCES.map((name) => newest(join(APP, name))));
  const made = statSync(join(built, "sw.js"), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (made < changed) {
    const vite = fileURLToPath(new URL("../../node_modules/vite/bin/vite.js", import.meta.url));
    execFileSync(process.execPath, [vite, "build", "--mode", "fake", "--logLevel", "error"], {
      cwd: APP,
      stdio: "inherit",
    });
  }
  return built;
}
