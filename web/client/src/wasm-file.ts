// The wasm: beside this module, or where it was said to be.

import init, { type InitOutput } from "./wasm/rullama.js";

export function startWasm(address?: string): Promise<InitOutput> {
  return init({ module_or_path: address ?? new URL("./wasm/rullama_bg.wasm", import.meta.url) });
}
