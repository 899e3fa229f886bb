// The answer that is being written: asks the model, shows and saves what comes, and says how it ended.

import type { CanvasToken, GenerateEvent, GenerateOptions, SettleStep } from "rullama";
import type { Attached } from "../lib/attachments.js";
import { toMessages, tooOld, type Turn } from "../lib/conversation.js";
import { codeOf, describe, titleOf } from "../lib/failures.js";
import { plain } from "../lib/markdown.js";
import { throttle } from "../lib/throttle.js";
import { adapters } from "./adapters.svelte.js";
import { chats, type NewTurn } from "./chats.svelte.js";
import { model } from "./model.svelte.js";
import { notices } from "./notices.svelte.js";
import { route, settle } from "./route.svelte.js";
import { settings } from "./settings.svelte.js";
import { t } from "../text/index.svelte.js";

/** How often the page is redrawn and the answer saved: a closed tab loses at most half a second. */
const SHOW_MS = 50;
const SAVE_MS = 500;
/** Tokens around each message that are not its text. */
const TURN_TOKENS = 8;
/** What a video takes at most, and a sound of eleven seconds. */
const ATTACHMENT_TOKENS = { audio: 280, video: 32 * 70 };

class Answer {
  /** The turn that is being written, while there is one. */
  turn = $state<string>();
  phase = $state<"reading" | "thinking" | "writing">("reading");
  read = $state<{ done: number; total: number }>();
  /** The block that settles, of models whose do. */
  canvas = $state.raw<SettleStep & { tokens?: CanvasToken[] }>();
  #abort: AbortController | undefined;

  constructor() {
    // An answer would keep the old model until it ends.
    model.leaving = () => this.stop();
  }

  get busy(): boolean {
    return this.turn !== undefined;
  }

  stop(): void {
    this.#abort?.abort();
  }

  /** Says something and waits for the answer; false if it could not be said. */
  async send(text: string, attachments: Attached[] = []): Promise<boolean> {
    return this.#say({ role: "user", content: text, ...(attachments.length ? { attachments } : {}) });
  }

  /** Says something else in a turn's place; what was said before stays as a branch. */
  async edit(turn: Turn, text: string): Promise<void> {
    const { conversation, attachments } = $state.snapshot(turn);
    const edited: NewTurn = { role: "user", content: text, conversation, ...(attachments ? { attachments } : {}) };
    await this.#say(edited, turn.parent);
  }

  async #say(said: NewTurn, parent?: string | null): Promise<boolean> {
    if (!this.#claim()) return false;
    try {
      const turn = await chats().add(said, parent);
      // A first message gives a conversation its address, if it is still the one that is shown.
      const { page, id } = route.current;
      if (page === "chat" && id === undefined && chats().current?.id === turn.conversation) settle(turn.conversation);
      await this.#write(turn);
      return true;
    } catch (error) {
      notices.show(t("save.message", { reason: describe(error).detail ?? t("save.storage") }));
      return false;
    } finally {
      this.turn = undefined;
    }
  }

  /** Answers a turn again; the old answer stays as an alternative. */
  async again(turn: Turn): Promise<void> {
    const asked = turn.role === "assistant" ? chats().turns[turn.parent ?? ""] : turn;
    if (asked) await this.#to(asked);
  }

  /** Answers a turn again without the oldest messages, so that half of the context is free. */
  async withoutOldest(turn: Turn): Promise<void> {
    const asked = turn.role === "assistant" ? chats().turns[turn.parent ?? ""] : turn;
    if (asked) await this.#to(asked, (path) => this.#leaveOut(path));
  }

  async #to(asked: Turn, leaveOut?: (path: Turn[]) => Promise<number>): Promise<void> {
    if (!this.#claim()) return;
    try {
      await this.#write(asked, leaveOut);
    } finally {
      this.turn = undefined;
    }
  }

  /** Begins an answer, before anything is waited for: a second click must not start a second one. */
  #claim(): boolean {
    if (this.busy || !model.chats) return false;
    this.turn = "";
    this.phase = "reading";
    this.read = undefined;
    this.#abort = new AbortController();
    return true;
  }

  async #leaveOut(path: Turn[]): Promise<number> {
    const { api, info } = model;
    if (!api || !info) return 0;
    const tokensOf = { ...ATTACHMENT_TOKENS, image: settings.pictures };
    const sizes: number[] = [];
    for (const one of path) {
      const shown = (one.attachments ?? []).reduce((sum, { kind }) => sum + tokensOf[kind], 0);
      sizes.push((await api.tokenize(one.content)).length + TURN_TOKENS + shown);
    }
    // Half of the context, or whatever leaves out one exchange more.
    const all = sizes.reduce((sum, size) => sum + size, 0);
    return tooOld(path, sizes, Math.min(info.context / 2, all - 1));
  }

  /** Writes an answer to a turn, in its own conversation: another one may be shown by now. */
  async #write(asked: Turn, leaveOut?: (path: Turn[]) => Promise<number>): Promise<void> {
    const { api, choice } = model;
    if (!api) return;
    const { conversation } = asked;
    const adapter = adapters.chosen?.name;
    const answering = adapter === undefined ? choice?.name : `${choice?.name} + ${adapter}`;
    let turn: Turn | undefined;
    try {
      const { path, system: own } = await chats().history(asked);
      const before = path.findLast((one) => one.role === "assistant")?.leftOut ?? 0;
      const leftOut = leaveOut ? await leaveOut(path) : before;
      const row = { role: "assistant", content: "", conversation, model: answering } as const;
      turn = await chats().add({ ...row, ...(leftOut > 0 ? { leftOut } : {}) }, asked.id);
      this.turn = turn.id;
      chats().writing.set(turn.id, turn);
      notices.speak(t("spoken.answering"));
      const shown = path.slice(leftOut);
      const system = own ?? (settings.system || model.info?.system);
      const blobs = await this.#blobs(shown);
      const messages = toMessages(shown, { system, pictures: settings.pictures, blobs });
      await this.#follow(turn, api.chat(messages, this.#options()));
    } catch (error) {
      if (turn) this.#failed(turn, error);
      else notices.show(t("save.answer", { reason: describe(error).detail ?? t("save.storage") }));
    } finally {
      this.canvas = undefined;
      if (turn) {
        // What looks finished is kept, whatever happens to the tab.
        await chats()
          .save(turn)
          .catch(() => notices.show(t("save.lost")));
        chats().writing.delete(turn.id);
      }
    }
  }

  /** The bytes of what is attached to turns. */
  async #blobs(path: readonly Turn[]): Promise<Map<string, Blob>> {
    const blobs = new Map<string, Blob>();
    for (const { id, name } of path.flatMap((turn) => turn.attachments ?? [])) {
      const blob = await chats().blob(id);
      if (!blob) throw Object.assign(new Error(t("attach.lost", { name })), { code: "bad_media" });
      blobs.set(id, blob);
    }
    return blobs;
  }

  #options(): GenerateOptions {
    const think = settings.think && model.info?.thinking === true;
    const { choices } = adapters;
    const adapted = choices.length > 0 ? { adapters: choices } : {};
    const options = { ...$state.snapshot(settings.sampling), think, ...adapted, signal: this.#abort?.signal };
    if (model.info?.kind !== "diffusion") return options;
    // Words that change all the time are motion, too.
    const canvas = settings.watch && !matchMedia("(prefers-reduced-motion: reduce)").matches;
    return { ...options, ...$state.snapshot(settings.settle), canvas };
  }

  async #follow(turn: Turn, events: AsyncIterable<GenerateEvent>): Promise<void> {
    let content = "";
    let thinking = "";
    const show = throttle(SHOW_MS, () => {
      turn.content = content;
      if (thinking) turn.thinking = thinking;
    });
    const save = throttle(SAVE_MS, () => {
      show.flush();
      // Losing one of these is no harm: the end is saved with care.
      void chats()
        .save(turn)
        .catch(() => {});
    });
    try {
      for await (const event of events) {
        if (event.type === "prefill") this.read = { done: event.done, total: event.total };
        else if (event.type === "canvas" || event.type === "step") {
          this.phase = "writing";
          this.canvas = event;
          continue;
        } else if (event.type === "text") {
          this.phase = "writing";
          this.canvas = undefined;
          content += event.text;
        } else if (event.type === "thinking") {
          this.phase = "thinking";
          thinking += event.text;
        } else if (event.type === "tool_call") turn.toolCalls = [...(turn.toolCalls ?? []), event.call];
        else if (event.type === "bad_call") turn.badCalls = [...(turn.badCalls ?? []), event.raw];
        else if (event.type === "done") this.#done(turn, event, content);
        show();
        save();
      }
    } finally {
      turn.content = content;
      if (thinking) turn.thinking = thinking;
      show.flush();
      save.flush();
    }
  }

  #done(turn: Turn, event: Extract<GenerateEvent, { type: "done" }>, content: string): void {
    turn.finish = event.finish;
    turn.usage = event.usage;
    notices.speak(event.finish === "cancelled" ? t("turn.stopped") : plain(content) || t("turn.empty"));
  }

  #failed(turn: Turn, error: unknown): void {
    const code = codeOf(error);
    turn.finish = code === "cancelled" ? "cancelled" : "failed";
    if (code === "cancelled") return;
    const failure = describe(error);
    const { detail } = failure;
    turn.failure = code;
    if (detail) turn.failureDetail = detail;
    notices.speak(titleOf(failure));
    if (code === "device_lost" || code === "freed") model.drop(error);
  }
}

export const answer = new Answer();
