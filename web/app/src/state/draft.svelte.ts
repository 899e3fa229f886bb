// What is attached to the message that is being written.

import { attach, AttachmentError, kindOf, type Attachment } from "../lib/attachments.js";
import { notices } from "./notices.svelte.js";

class Draft {
  attachments = $state<Attachment[]>([]);

  /** Attaches files; says which of them cannot be. */
  async add(files: Iterable<File>): Promise<void> {
    for (const file of files) {
      try {
        this.attachments.push(await attach(file));
      } catch (error) {
        notices.show(error instanceof AttachmentError ? error.message : `${file.name} cannot be attached.`);
      }
    }
  }

  remove(at: number): void {
    this.attachments.splice(at, 1);
  }

  /** Everything attached, which is then gone from here. */
  take(): Attachment[] {
    const taken = $state.snapshot(this.attachments) as Attachment[];
    this.attachments = [];
    return taken;
  }
}

export const draft = new Draft();

/** Files that can be attached. */
export function media(files: Iterable<File>): File[] {
  return [...files].filter((file) => kindOf(file.type) !== undefined);
}
