// The real `rullama serve` with the demo model that it brings, on a port of its own.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { ROOT, program } from "./program.ts";

const STARTS_WITHIN_MS = 60_000;

/** Reads the address that the program prints. */
async function address(child: ChildProcess): Promise<string> {
  if (!child.stdout) throw new Error("the program has no output");
  const lines = createInterface({ input: child.stdout });
  const first = once(lines, "line", { signal: AbortSignal.timeout(STARTS_WITHIN_MS) });
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`rullama serve ended with ${String(code)}`);
  });
  const [line] = (await Promise.race([first, ended])) as [string];
  return (JSON.parse(line) as { url: string }).url.replace(/\/$/u, "");
}

export interface Served {
  origin: string;
  stop(): Promise<void>;
}

/** Serves the app, the demo model and those of a store, and nothing of this machine's own; pages of `origin` may read them. */
export async function startServe({ store, origin: site }: { store?: string; origin?: string } = {}): Promise<Served> {
  const args = ["--store", store ?? join(ROOT, "goldens/text"), "serve", "--json", "--port", "0"];
  if (site !== undefined) args.push("--origin", site);
  const child = spawn(program(), args, { stdio: ["ignore", "pipe", "inherit"] });
  const origin = await address(child);
  return {
    origin,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, "exit");
      child.kill("SIGINT");
      await ended;
    },
  };
}
