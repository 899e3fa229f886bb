// Numbers that decide how storage and network are used; tests make them small.

const MIB = 1 << 20;

export interface Tuning {
  /** Bytes of a part file. A part can be read when it is full; in a page (not a worker) a crash loses the unfinished one. */
  partBytes: number;
  /** Bytes of a request while a source that is not kept is read forwards. */
  streamBytes: number;
  /** Such a request ends when nobody has read from it for this long. */
  idleMs: number;
  /** Bytes that such a reader may leave out without a new request. */
  skipBytes: number;
  /** Single requests at the same time. */
  inFlight: number;
  /** Reads that are not sequential and shorter than this get a request of exactly their bytes. */
  smallRead: number;
  /** A read that ends further than this before the writer gets there may go to the network directly. */
  waitAhead: number;
  /** At most one byte in so many is fetched directly and then a second time by the writer. */
  twiceShare: number;
  /** A connection is given up after this long without a byte. */
  stallMs: number;
  /** Failures in a row, without a byte between them, until we give up. */
  tries: number;
  /** The same for the first contact, where a wrong address is as likely as a bad moment. */
  firstTries: number;
  /** Pause after the first failure; doubles with each one, up to `mostBackoffMs`. */
  backoffMs: number;
  mostBackoffMs: number;
  /** Least time between two reports of progress within a part. */
  reportMs: number;
  /** Download and read the network in workers of their own, where there are workers. */
  workers: boolean;
  /** Headers of requests to one origin, such as a token. */
  headers?: { origin: string; values: Record<string, string> };
  /** In place of the global `fetch`; only without workers. */
  fetch?: typeof fetch;
}

/** The headers that an address may see. */
export function headersFor(url: string, { headers }: Pick<Tuning, "headers">): Record<string, string> {
  return headers && new URL(url).origin === headers.origin ? headers.values : {};
}

export const TUNING: Tuning = {
  partBytes: 16 * MIB,
  streamBytes: 256 * MIB,
  idleMs: 200,
  skipBytes: 4 * MIB,
  inFlight: 4,
  smallRead: MIB / 4,
  waitAhead: 64 * MIB,
  twiceShare: 16,
  stallMs: 20_000,
  tries: 6,
  firstTries: 3,
  backoffMs: 300,
  mostBackoffMs: 5_000,
  reportMs: 100,
  workers: true,
};
