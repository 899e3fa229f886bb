// The answer that is being written: asks the model, shows and saves what comes, and says how it ended.

import type { CanvasToken, GenerateEvent, GenerateOptions, SettleStep } from "rullama";
import type { Attachment } from "../lib/attachments.js";
import { branch, toMessages, tooOld, type Turn } from "../lib/conversation.js";
import { codeOf, describe } from "../lib/failures.js";
import { plain } from "../lib/markdown.js";
import { throttle } from "../lib/throttle.js";
import { adapters } from "./adapters.svelte.js";
import { chats } from "./chats.svelte.js";
import { model } from "./model.svelte.js";
import { notices } from "./notices.svelte.js";
import { route, settle } from "./route.svelte.js";
import { settings } from "./settings.svelte.js";

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

  /** Says something and waits for the answer. */
  async send(text: string, attachments: Attachment[] = []): Promise<void> {
    if (this.busy || !model.chats) return;
    const turn = await chats().add({ role: "user", content: text, ...(attachments.length ? { attachments } : {}) });
    // A first message gives a conversation its address, if it is still the one that is shown.
    const { page, id } = route.current;
    if (page === "chat" && id === undefined && chats().current?.id === turn.conversation) settle(turn.conversation);
    await this.to(turn);
  }

  /** Says something else in a turn's place; what was said before stays as a branch. */
  async edit(turn: Turn, text: string): Promise<void> {
    if (this.busy || !model.chats) return;
    const kept = turn.attachments ? { attachments: turn.attachments } : {};
    const edited = await chats().add({ role: "user", content: text, ...kept }, turn.parent);
    await this.to(edited);
  }

  /** Answers a turn again; the old answer stays as an alternative. */
  async again(turn: Turn): Promise<void> {
    const asked = turn.role === "assistant" ? chats().turns[turn.parent ?? ""] : turn;
    if (asked) await this.to(asked);
  }

  /** Answers a turn again without the oldest messages, so that half of the context is free. */
  async withoutOldest(turn: Turn): Promise<void> {
    const { api, info } = model;
    const asked = turn.role === "assistant" ? chats().turns[turn.parent ?? ""] : turn;
    if (!asked || !api || !info || this.busy) return;
    const path = branch(chats().turns, asked.id);
    const tokensOf = { ...ATTACHMENT_TOKENS, image: settings.pictures };
    const sizes: number[] = [];
    for (const one of path) {
      const shown = (one.attachments ?? []).reduce((sum, { kind }) => sum + tokensOf[kind], 0);
      sizes.push((await api.tokenize(one.content)).length + TURN_TOKENS + shown);
    }
    // Half of the context, or whatever leaves out one exchange more.
    const all = sizes.reduce((sum, size) => sum + size, 0);
    await this.to(asked, tooOld(path, sizes, Math.min(info.context / 2, all - 1)));
  }

  /** Writes an answer to a turn. */
  async to(asked: Turn, leaveOut?: number): Promise<void> {
    const { api, choice } = model;
    if (this.busy || !api || !model.chats) return;
    const { turns, current, draftSystem } = chats();
    const path = branch(turns, asked.id);
    const leftOut = leaveOut ?? path.findLast((turn) => turn.role === "assistant")?.leftOut ?? 0;
    const system = current?.system ?? draftSystem ?? (settings.system || model.info?.system);
    const messages = toMessages(path.slice(leftOut), system, settings.pictures);
    const adapter = adapters.chosen?.name;
    const answering = adapter === undefined ? choice?.name : `${choice?.name} + ${adapter}`;
    // Claimed before anything is waited for: a second click must not start a second answer.
    this.turn = "";
    this.phase = "reading";
    this.read = undefined;
    this.#abort = new AbortController();
    let turn: Turn | undefined;
    try {
      turn = await chats().add(
        { role: "assistant", content: "", model: answering, ...(leftOut > 0 ? { leftOut } : {}) },
        asked.id,
      );
      this.turn = turn.id;
      chats().writing.set(turn.id, turn);
      notices.speak("The model is answering.");
      await this.#follow(turn, api.chat(messages, this.#options()));
    } catch (error) {
      if (turn) this.#failed(turn, error);
      else notices.show(`The message could not be saved: ${describe(error).detail ?? "storage does not work"}`);
    } finally {
      this.canvas = undefined;
      if (turn) {
        await chats()
          .save(turn)
          .catch(() => notices.show("This answer could not be saved."));
        chats().writing.delete(turn.id);
      }
      // What looks finished is kept, whatever happens to the tab.
      this.turn = undefined;
    }
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
    notices.speak(event.finish === "cancelled" ? "Stopped." : plain(content) || "The answer is empty.");
  }

  #failed(turn: Turn, error: unknown): void {
    const code = codeOf(error);
    turn.finish = code === "cancelled" ? "cancelled" : "failed";
    if (code === "cancelled") return;
    const { title, detail } = describe(error);
    turn.failure = code;
    if (detail) turn.failureDetail = detail;
    notices.speak(title);
    if (code === "device_lost" || code === "freed") model.drop(error);
  }
}

export const answer = new Answer();
