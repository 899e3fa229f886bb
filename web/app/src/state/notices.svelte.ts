// Short notices at the screen's edge, and words for screen readers alone.

export interface Notice {
  id: number;
  text: string;
  action?: { label: string; run: () => void };
  /** Milliseconds it stays; what can be undone stays longer. */
  stays?: number;
  /** Called when the notice goes away without its action. */
  gone?: () => void;
}

const SHOWN_MS = 8000;
const SPOKEN = 5;
let next = 1;

class Notices {
  list = $state<Notice[]>([]);
  /** What screen readers say next, when they have a pause: the last few, as one may come before another was read. */
  spoken = $state<{ id: number; text: string }[]>([]);
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
      setTimeout(() => this.close(id), this.list.find((one) => one.id === id)?.stays ?? SHOWN_MS),
    );
  }

  speak(text: string): void {
    this.spoken = [...this.spoken.slice(-SPOKEN + 1), { id: next++, text }];
  }
}

export const notices = new Notices();
