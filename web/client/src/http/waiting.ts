// Streams of models that are still being loaded: clients wait only so long for the headers, so these go out early.

/** Settles with the answer, or with nothing when it takes too long. */
export async function within<T>(answer: Promise<T>, ms: number): Promise<T | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<undefined>((resolve) => (timer = setTimeout(resolve, ms, undefined)));
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Comments, which clients of event streams skip, until there is an answer; then its frames. */
export async function* keptOpen(answer: Promise<Response>, everyMs: number): AsyncGenerator<string, void, void> {
  let response = await within(answer, 0);
  while (!response) {
    yield ": loading\n\n";
    response = await within(answer, everyMs);
  }
  const reader = response
    .body!.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array<ArrayBuffer>>)
    .getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  } finally {
    await reader.cancel().catch(() => {});
  }
}
