// A hash worker as the client has one, with the browser's own SHA-256 over collected bytes.
import { answerHashing } from "../../client/src/storage/index.js";
import { sha256 } from "./lab.js";

answerHashing(async () => {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  return {
    update: (bytes) => void pieces.push(bytes),
    digest: async () => sha256(await new Blob(pieces).arrayBuffer()),
  };
});
