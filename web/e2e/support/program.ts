// The native program, as it was built last.
import { existsSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../../..", import.meta.url));

/** A debug build by preference: it serves the app that was built last, a release build the one it was made with. */
export function program(): string {
  const target = process.env["CARGO_TARGET_DIR"] ?? join(ROOT, "target");
  const places = [process.env["RULLAMA"] ?? "", join(target, "debug/rullama"), join(target, "release/rullama")];
  const found = places.find((path) => path !== "" && existsSync(path));
  if (!found) throw new Error("no `rullama` program: `cargo build --package rullama-cli` makes one");
  return found;
}
