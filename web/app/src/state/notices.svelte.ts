// Short notices at the screen's edge, and words for screen readers alone.

export interface Notice {
  id: number;
  text: string;
  action?: { label: string; run: () => void };
  /** Called when the notice goes away without its action. */
  gone?: () => void;
}

const SHOWN_MS = 8000;
let next = 1;

class Notices {
  list = $state<Notice[]>([]);
  /** What a screen reader says next, when it has a pause. */
  spoken = $state("");
  #timers = new Map<number, ReturnType<typeof setTimeout>>();

  show(text: string, more: Omit<Notice, "id" | "text"> = {}): void {
    const notice: Notice = { id: next++, text, ...more };
    this.list.push(notice);
    this.resume(notice.id);
  }

  /** Takes a notice away; with its action done or not. */
  close(id: number, acted = false): void {
    const notice = this.list.find((one) => one.id === id);
    this.hold(id);
    this.list = this.list.filter((one) => one.id !== id);
    if (!acted) notice?.gone?.();
  }

  /** Keeps a notice while somebody is at it. */
  hold(id: number): void {
    clearTimeout(this.#timers.get(id));
    this.#timers.delete(id);
  }

  resume(id: number): void {
    this.hold(id);
    this.#timers.set(
      id,
      setTimeout(() => this.close(id), SHOWN_MS),
    );
  }

  speak(text: string): void {
    // The same words twice are two announcements.
    this.spoken = text === this.spoken ? `${text}\u00a0` : text;
  }
}

export const notices = new Notices();
