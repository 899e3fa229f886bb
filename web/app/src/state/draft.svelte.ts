// What is attached to the message that is being written.

import { attach, AttachmentError, kindOf, type Attached } from "../lib/attachments.js";
import { notices } from "./notices.svelte.js";
import { t } from "../text/index.svelte.js";

class Draft {
  attachments = $state.raw<Attached[]>([]);

  /** Attaches files; says which of them cannot be. */
  async add(files: Iterable<File>): Promise<void> {
    for (const file of files) {
      try {
        const attached = await attach(file);
        this.attachments = [...this.attachments, attached];
      } catch (error) {
        notices.show(error instanceof AttachmentError ? error.message : t("attach.failed", { name: file.name }));
      }
    }
  }

  remove(at: number): void {
    this.attachments = this.attachments.filter((_, index) => index !== at);
  }

  /** Everything attached, which is then gone from here. */
  take(): Attached[] {
    const taken = this.attachments;
    this.attachments = [];
    return taken;
  }

  /** Attaches again what could not be sent. */
  giveBack(taken: Attached[]): void {
    this.attachments = [...taken, ...this.attachments];
  }
}

export const draft = new Draft();

/** Files that can be attached. */
export function media(files: Iterable<File>): File[] {
  return [...files].filter((file) => kindOf(file.type) !== undefined);
}
