// Where models come from and stay: files, addresses, names, and this browser's own storage.

export type { ByteSource, HashPieces, OpenOptions, Opened } from "./types.js";
