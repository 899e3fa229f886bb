// Storage: models in this browser, and those that a server offers.

/** A model in this browser's storage. */
export interface StoredModel {
  /** Its key: `sha256-…`, or one made of its address. */
  id: string;
  /** What to call it; a file name for one that came from an address. */
  name: string;
  /** Names it can be loaded by; a file from an address has none. */
  names: string[];
  /** Where it came from: an address it can be loaded by, too. */
  source: string;
  bytes: number;
  /** Bytes that are here; less than `bytes` for a download that was cut. Such a one is deleted after two weeks without use. */
  have: number;
  /** Whether it is whole and its checksum (where there is one) was right. */
  complete: boolean;
  /** Milliseconds since 1970. */
  added: number;
  used: number;
}

export interface StorageReport {
  models: StoredModel[];
  usage: number;
  quota: number;
  /** Whether the browser promised not to evict it. */
  persisted: boolean;
}

/** A model that `rullama serve` offers. */
export interface ServedModel {
  name: string;
  size: number;
  modified?: string;
  layers: { kind: string; digest: string | null; size: number; url: string }[];
  parameters?: Record<string, unknown>;
  system?: string | null;
  /** Why it cannot be loaded. */
  error?: string;
}
