// Where models come from and stay: files, addresses, names, and this browser's own storage.

export { type Hasher, answerHashing, hashInWorker } from "./hashing.js";
export { HUB, hubPlace } from "./hugging-face.js";
export { keepFile } from "./keep-file.js";
export { ModelStorage } from "./models.js";
export { layerOf, layersOf, servedModels } from "./names.js";
export { openModel } from "./open.js";
export { checked } from "./open-remote.js";
export type { ByteSource, HashPieces, OpenOptions, Opened } from "./types.js";
export { TUNING, type Tuning } from "./tuning.js";
