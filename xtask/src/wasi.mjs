#!/usr/bin/env -S node --no-warnings
// Runs a wasm32-wasip1 test binary under Node, with the whole file system visible (golden files are read by path).
import { readFile } from "node:fs/promises";
import { argv, env, exit } from "node:process";
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
const instance = await WebAssembly.instantiate(module, wasi.getImportObject());
exit(wasi.start(instance));
