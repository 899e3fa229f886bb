// The worker that hashes a download.

import { answerHashing } from "./storage/index.js";
import { startWasm } from "./wasm-file.js";
import { Sha256 } from "./wasm/rullama.js";

answerHashing(async () => {
  // The worker's name is the wasm's address, where it is not beside the script.
  const wasm = (globalThis as unknown as { name: string }).name;
  await startWasm(wasm === "" ? undefined : wasm);
  return new Sha256();
});
