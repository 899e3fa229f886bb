// The body of an answer, in chunks.

export type Bytes = Uint8Array<ArrayBuffer>;

/** More than a browser has ready at a time, mostly, and little enough to stay in a processor's cache. */
const CHUNK_BYTES = 1 << 20;

/**
 * What gives the next bytes of a body, undefined at its end. They lie in memory that is used again for those that follow, where the
 * browser can read into memory of ours.
 */
export function chunksOf(body: ReadableStream<Bytes>): () => Promise<Bytes | undefined> {
  const reader = ownReader(body);
  if (!reader) {
    const plain = body.getReader();
    return async () => (await plain.read()).value;
  }
  let memory = new ArrayBuffer(CHUNK_BYTES);
  return async () => {
    const { done, value } = await reader.read(new Uint8Array(memory));
    if (done || !value) return undefined;
    memory = value.buffer;
    return value;
  };
}

/** A reader that fills memory of ours; undefined where a body has none. */
function ownReader(body: ReadableStream<Bytes>): ReadableStreamBYOBReader | undefined {
  try {
    return body.getReader({ mode: "byob" });
  } catch {
    return undefined;
  }
}
