#!/usr/bin/env -S node --no-warnings --no-wasm-lazy-compilation --liftoff-only
// Runs a wasm32-wasip1 test binary under Node, with the whole file system visible (golden files are read by path).
// Eager compilation, and all memory at the start (`.cargo/config.toml`): otherwise Node 20 can crash when memory grows.
// The baseline compiler only: Node 20 can crash when it exits while the optimizing compiler works in the background.
import { readFile } from "node:fs/promises";
import process, { argv, env } from "node:process";
import { WASI } from "node:wasi";

const [binary, ...args] = argv.slice(2);
const wasi = new WASI({
  version: "preview1",
  args: [binary, ...args],
  env: { RUST_BACKTRACE: "1", PROPTEST_CASES: env.PROPTEST_CASES ?? "64", RUST_TEST_THREADS: "1" },
  preopens: { "/": "/" },
  returnOnExit: true,
});
const module = await WebAssembly.compile(await readFile(binary));
const imports = wasi.getImportObject();
// What calls JavaScript is linked into tests of the engine, but nothing of it is tested here.
for (const { module: from, name, kind } of WebAssembly.Module.imports(module)) {
  if (kind !== "function" || from in wasi.getImportObject()) continue;
  imports[from] ??= {};
  imports[from][name] = () => {
    throw new Error(`${from}.${name} was called: there is no JavaScript here`);
  };
}
const instance = await WebAssembly.instantiate(module, imports);
process.exitCode = wasi.start(instance);
