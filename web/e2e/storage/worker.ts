// Runs the tests' functions in a worker, where production runs the storage.
import { lab } from "./lab.js";

Object.assign(globalThis, { lab });

interface Request {
  number: number;
  code: string;
  argument: unknown;
}

addEventListener("message", ({ data }: MessageEvent<Request>) => {
  // oxlint-disable-next-line no-eval -- running functions from the tests is what this worker is for
  const run = async () => (0, eval)(`(${data.code})`)(data.argument) as unknown;
  run().then(
    (value) => postMessage({ number: data.number, value }),
    (error: unknown) =>
      postMessage({ number: data.number, error: error instanceof Error ? error.stack : String(error) }),
  );
});
postMessage({ number: 0 });
