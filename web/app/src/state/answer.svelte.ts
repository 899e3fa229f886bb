// Answers that are being written or wait for their turn: asks the model, shows and saves what comes, and says how it ended. The model
// answers one request at a time, so later ones queue here, each in its own conversation.

import type {
  AdapterChoice,
  CanvasToken,
  DenoisingStep,
  GenerateEvent,
  GenerateOptions,
  MediaEvent,
  ModelApi,
} from "rullama";
import { isMedia, type Attached, type Attachment } from "../lib/attachments.js";
import { branch, stepMessages, toMessages, tooOld, type ToolRun, type Turn } from "../lib/conversation.js";
import { excerptsBlock } from "../lib/excerpts.js";
import { codeOf, describe, storageProblem, titleOf } from "../lib/failures.js";
import { FIELDS, type FieldName } from "../lib/options.js";
import { plain } from "../lib/markdown.js";
import { Sentences } from "../lib/sentences.js";
import { throttle } from "../lib/throttle.js";
import { adapters } from "./adapters.svelte.js";
import { chats, type NewTurn } from "./chats.svelte.js";
import { model } from "./model.svelte.js";
import { notices } from "./notices.svelte.js";
import { replaceRoute, route } from "./route.svelte.js";
import { nameChat } from "./titles.js";
import { settings } from "./settings.svelte.js";
import { tools } from "./tools.svelte.js";
import { t } from "../text/index.svelte.js";

/** How often the page is redrawn and the answer saved: a closed tab loses at most half a second. */
const SHOW_MS = 50;
const SAVE_MS = 500;
/** Tokens around each message that are not its text. */
const TURN_TOKENS = 8;
/** What a video takes at most, and eleven seconds of audio. */
const ATTACHMENT_TOKENS = { audio: 280, video: 32 * 70 };

/** What an answer is written with, beyond the settings. */
interface Wish {
  /** How many of the oldest turns to leave out. */
  leaveOut?: (path: Turn[]) => Promise<number>;
  /** Leave out all attachments. */
  withoutMedia?: boolean;
  /** An answer to go on with where it stopped, in place of a new one. */
  continued?: Turn;
  /** Who answers, in place of the loaded model with the chosen adapter. */
  by?: Answerer;
}

/** A model that answers, with its adapters. */
export interface Answerer {
  api: ModelApi;
  name: string;
  adapters: AdapterChoice[];
}

/** An answer that is being written or waits. */
export interface Job {
  /** The turn of the answer. */
  turn: string;
  conversation: string;
  /** The message it answers. */
  asked: string;
  phase: "queued" | "documents" | "tools" | "media" | "reading" | "thinking" | "writing";
  /** Whether it was told to stop and has not ended yet. */
  stopping: boolean;
  read?: { done: number; total: number };
  /** Passages of documents that have been embedded. */
  embedded?: { done: number; total: number };
  /** The attachment that is being decoded or encoded. */
  media?: MediaEvent;
  /** The block that is denoised, of diffusion models. */
  canvas?: DenoisingStep & { tokens?: CanvasToken[] };
  /** When the model began with it, by `performance.now()`. */
  begun?: number;
}

const mediaOf = (path: readonly Turn[]): Attachment[] => path.flatMap((one) => (one.attachments ?? []).filter(isMedia));

/** Fetched with the first document. */
const documents = () => import("./documents.svelte.js");

class Answer {
  /** In the order they are written; only the first one has begun. */
  jobs = $state<Job[]>([]);
  #stops = new Map<string, AbortController>();
  #last: Promise<unknown> = Promise.resolve();

  constructor() {
    // An answer would keep the old model until it ends.
    model.leaving = () => this.#stop(this.jobs);
    model.regained = () => void this.#regain();
  }

  get busy(): boolean {
    return this.jobs.length > 0;
  }

  /** The answers that belong to a conversation. */
  of(conversation: string | undefined): Job[] {
    return this.jobs.filter((job) => job.conversation === conversation);
  }

  /** The answers of the conversation that is shown. */
  get shown(): Job[] {
    return this.of(chats().current?.id);
  }

  job(turn: string): Job | undefined {
    return this.jobs.find((job) => job.turn === turn);
  }

  /** Stops the answers of a conversation, also those that wait: of the one that is shown, unless told otherwise. */
  stop(conversation = chats().current?.id): void {
    this.#stop(this.of(conversation));
  }

  #stop(jobs: Job[]): void {
    for (const job of jobs) {
      job.stopping = true;
      this.#stops.get(job.turn)?.abort();
    }
  }

  /** Sends a message, whose answer is written as soon as the model is free; false if it could not be sent. */
  async send(text: string, attachments: Attached[] = []): Promise<boolean> {
    return this.#say({ role: "user", content: text, ...(attachments.length ? { attachments } : {}) });
  }

  /** Sends something else in a turn's place; what was sent before stays as a branch. */
  async edit(turn: Turn, text: string, attachments: Attachment[]): Promise<void> {
    const { conversation } = turn;
    const kept = $state.snapshot(attachments);
    const edited: NewTurn = {
      role: "user",
      content: text,
      conversation,
      ...(kept.length ? { attachments: kept } : {}),
    };
    await this.#say(edited, turn.parent);
  }

  async #say(said: NewTurn, parent?: string | null): Promise<boolean> {
    if (!model.chats) return false;
    let turn: Turn;
    try {
      turn = await chats().add(said, parent);
    } catch (error) {
      notices.show(t("save.message", { reason: storageProblem(error) }));
      return false;
    }
    // A first message gives a conversation its address, if it is still the one that is shown.
    const { page, id } = route.current;
    if (page === "chat" && id === undefined && chats().current?.id === turn.conversation)
      replaceRoute(turn.conversation);
    await this.#to(turn);
    return true;
  }

  /** Puts another answer in a turn's place; the old one stays as an alternative. */
  async rewrite(turn: Turn, text: string): Promise<void> {
    const { conversation, model: by } = turn;
    const written = { role: "assistant", content: text, conversation, finish: "stop", edited: true } as const;
    await chats()
      .add({ ...written, ...(by === undefined ? {} : { model: by }) }, turn.parent)
      .catch((error: unknown) => notices.show(t("save.answer", { reason: storageProblem(error) })));
  }

  /** Answers a turn again; the old answer stays as an alternative. */
  async again(turn: Turn, wish: Wish = {}): Promise<void> {
    const asked = turn.role === "assistant" ? chats().turns[turn.parent ?? ""] : turn;
    // A second click must not start a second one.
    if (asked && model.chats && !this.jobs.some((job) => job.asked === asked.id)) await this.#to(asked, wish);
  }

  /** Answers a turn again without the oldest messages, so that half of the context is free. */
  withoutOldest(turn: Turn): Promise<void> {
    return this.again(turn, { leaveOut: (path) => this.#leaveOut(path) });
  }

  /** Answers a turn again without anything that is attached to it or to what was said before. */
  withoutMedia(turn: Turn): Promise<void> {
    return this.again(turn, { withoutMedia: true });
  }

  /** Whether an answer that ended early can go on where it stopped. Thoughts, tools and media cannot be part of that. */
  continues(turn: Turn): boolean {
    const { finish, role, content, toolCalls, badCalls } = turn;
    const early = finish === undefined || finish === "cancelled" || finish === "length" || finish === "failed";
    if (!early || role !== "assistant" || content === "" || toolCalls?.length || badCalls?.length) return false;
    if (!model.chats || model.info?.kind !== "decoder" || this.of(turn.conversation).length > 0) return false;
    const path = branch(chats().turns, turn.parent).slice(turn.leftOut ?? 0);
    return turn.mediaLeftOut === true || !path.some(({ attachments }) => attachments?.some(isMedia));
  }

  /** Goes on with an answer that ended early. */
  async continue(turn: Turn): Promise<void> {
    const asked = chats().turns[turn.parent ?? ""];
    const updated = chats().list.find((one) => one.id === turn.conversation)?.updated ?? 0;
    // An answer without an end may be another tab's, which saves it again and again.
    if (turn.finish === undefined && Date.now() - updated < 2 * SAVE_MS) return notices.show(t("turn.writing"));
    if (asked && this.continues(turn)) await this.#to(asked, { continued: turn });
  }

  /** Goes on with an answer that failed, or answers again where nothing was written. */
  resume(turn: Turn): Promise<void> {
    return this.continues(turn) ? this.continue(turn) : this.again(turn);
  }

  /** Goes on with the shown answer that the lost GPU ended. */
  async #regain(): Promise<void> {
    const last = chats().path.at(-1);
    // It may have failed and not be saved yet.
    if (last && this.job(last.id)) await this.#last;
    if (last?.failure === "device_lost") await this.resume(last);
  }

  /** Answers a message again by another model or adapter; gives the new answer's turn as soon as it is there. */
  compare(asked: Turn, by: Answerer): Promise<Turn | undefined> {
    return new Promise((resolve) => void this.#to(asked, { by }, resolve).then(() => resolve(undefined)));
  }

  /** Queues an answer; its turn is there at once, so that the next message can follow it. */
  async #to(asked: Turn, wish: Wish = {}, queued: (turn: Turn) => void = () => {}): Promise<void> {
    const { conversation } = asked;
    const job = $state<Job>({ turn: "", conversation, asked: asked.id, phase: "queued", stopping: false });
    this.jobs.push(job);
    const stop = new AbortController();
    let turn: Turn;
    try {
      turn = wish.continued ?? (await chats().add({ role: "assistant", content: "", conversation }, asked.id));
    } catch (error) {
      this.jobs = this.jobs.filter((one) => one !== job);
      notices.show(t("save.answer", { reason: storageProblem(error) }));
      return;
    }
    job.turn = turn.id;
    this.#stops.set(turn.id, stop);
    if (job.stopping) stop.abort();
    chats().writing.set(turn.id, turn);
    queued(turn);
    const before = this.#last;
    const done = (async () => {
      await untilAborted(before, stop.signal);
      await this.#write(job, turn, asked, wish, stop.signal);
      await nameChat(asked, turn);
    })();
    // The next one waits for this one and, where this one gave up waiting, for those before it.
    this.#last = Promise.allSettled([before, done]);
    await done;
  }

  async #leaveOut(path: Turn[]): Promise<number> {
    const { api, info } = model;
    if (!api || !info) return 0;
    const sizes: number[] = [];
    for (const one of path) sizes.push(await this.#sizeOf(one));
    // Half of the context, or whatever leaves out one exchange more.
    const all = sizes.reduce((sum, size) => sum + size, 0);
    return tooOld(path, sizes, Math.min(info.context / 2, all - 1));
  }

  /** Tokens of a turn, about. */
  async #sizeOf({ content, attachments = [] }: Turn): Promise<number> {
    const tokensOf = { ...ATTACHMENT_TOKENS, image: settings.images };
    let words = (await model.api?.tokenize(content))?.length ?? 0;
    for (const one of attachments) {
      words += one.kind === "document" ? await (await documents()).documentTokens(one) : tokensOf[one.kind];
    }
    return words + TURN_TOKENS;
  }

  /** Writes an answer to a turn, in its own conversation: another one may be shown by now. */
  async #write(job: Job, turn: Turn, asked: Turn, wish: Wish, signal: AbortSignal): Promise<void> {
    const { by, continued } = wish;
    const { api } = by ?? model;
    let path: Turn[] = [];
    try {
      if (signal.aborted) throw new DOMException("stopped before it began", "AbortError");
      if (!api) throw Object.assign(new Error(t("bar.noModel")), { code: "freed" });
      turn.model = by?.name ?? adapters.nameWith(adapters.chosen);
      const history = await chats().history(asked);
      path = history.path;
      const before = path.findLast((one) => one.role === "assistant");
      const leftOut = wish.leaveOut ? await wish.leaveOut(path) : ((continued ?? before)?.leftOut ?? 0);
      if (leftOut > 0) turn.leftOut = leftOut;
      const shown = path.slice(leftOut);
      const media = this.#mediaFor(shown, wish);
      if (media.length === 0 && mediaOf(shown).length > 0) turn.mediaLeftOut = true;
      notices.speak(t("spoken.answering"));
      const system = history.system ?? (settings.system || api.info.system);
      const blobs = await this.#blobs(media);
      const material = await this.#documents(job, turn, shown, system, signal);
      const messages = toMessages($state.snapshot(shown) as Turn[], {
        system,
        images: settings.images,
        blobs,
        ...material,
      });
      if (continued) {
        for (const step of turn.steps ?? []) messages.push(...stepMessages(step));
        messages.push({ role: "assistant", content: turn.content, prefix: true });
      }
      // Tools are chosen for the loaded model.
      if (!by && tools.served(turn.conversation).length > 0) {
        job.phase = "tools";
        job.begun ??= performance.now();
      }
      const offered = by ? {} : await tools.options(turn, shown, signal);
      const options = { ...this.#options(api, wish, signal), ...offered };
      job.phase = blobs.size > 0 ? "media" : "reading";
      turn.settings = this.#settings(api, wish);
      job.begun ??= performance.now();
      await this.#follow(job, turn, api.chat(messages, options), continued !== undefined);
    } catch (error) {
      await this.#failed(turn, error, path, by !== undefined);
    } finally {
      // What looks finished is kept, whatever happens to the tab.
      await chats()
        .save(turn)
        .catch(() => notices.show(t("save.lost")));
      chats().writing.delete(turn.id);
      this.#stops.delete(turn.id);
      this.jobs = this.jobs.filter((one) => one.turn !== turn.id);
    }
  }

  /** What the model is shown of documents; passages are noted in the answer's turn, which cites them. */
  async #documents(job: Job, turn: Turn, path: Turn[], system: string | undefined, signal: AbortSignal) {
    const { conversation } = turn;
    const { collections: chosen = [] } = chats().offered(conversation);
    const attached = path.some(({ attachments = [] }) => attachments.some((one) => !isMedia(one)));
    if (!attached && chosen.length === 0) return {};
    job.phase = "documents";
    job.begun = performance.now();
    const onProgress = (done: number, total: number) => (job.embedded = { done, total });
    const place = { conversation, chosen, ...(system === undefined ? {} : { system }) };
    const material = await (await documents()).materialFor(path, place, { signal, onProgress });
    if (material.searched) {
      turn.sources = material.sources;
      turn.searched = material.searched;
    }
    return { documents: material.documents, excerpts: excerptsBlock(material.sources) };
  }

  /** The images, audio and video that the model is shown: not those that an earlier answer was written without. */
  #mediaFor(path: readonly Turn[], { withoutMedia, continued, by }: Wish): Attachment[] {
    if (withoutMedia || continued?.mediaLeftOut) return [];
    const media = mediaOf(path.slice(path.findLastIndex((one) => one.mediaLeftOut) + 1));
    return by || media.some(({ kind }) => model.kinds.has(kind)) ? media : [];
  }

  /** The bytes of attachments. */
  async #blobs(list: readonly Attachment[]): Promise<Map<string, Blob>> {
    const blobs = new Map<string, Blob>();
    for (const { id, name } of list) {
      const blob = await chats().blob(id);
      if (!blob) throw Object.assign(new Error(t("attach.lost", { name })), { code: "bad_media" });
      blobs.set(id, blob);
    }
    return blobs;
  }

  /** The settings that count: what is set, or else what the model brings. */
  #settings({ info }: ModelApi, wish: Wish): NonNullable<Turn["settings"]> {
    const known: Partial<Record<FieldName, number>> = {};
    for (const { name } of FIELDS) {
      const value = settings.sampling[name] ?? info.defaults[name];
      if (typeof value === "number" && name !== "seed") known[name] = value;
    }
    return { ...known, think: settings.think && info.thinking && !wish.continued };
  }

  #options({ info }: ModelApi, wish: Wish, signal: AbortSignal): GenerateOptions {
    // What is continued has been thought about already.
    const think = settings.think && info.thinking && !wish.continued;
    const choices = wish.by?.adapters ?? adapters.choices;
    const adapted = choices.length > 0 ? { adapters: choices } : {};
    const options = { ...$state.snapshot(settings.sampling), think, ...adapted, signal };
    if (info.kind !== "diffusion") return options;
    // Words that change all the time are motion, too.
    const canvas = settings.watch && !matchMedia("(prefers-reduced-motion: reduce)").matches;
    return { ...options, ...$state.snapshot(settings.denoising), canvas };
  }

  async #follow(job: Job, turn: Turn, events: AsyncIterable<GenerateEvent>, continued: boolean): Promise<void> {
    let content = continued ? turn.content : "";
    let thinking = continued ? (turn.thinking ?? "") : "";
    const before = continued ? (turn.usage?.answerTokens ?? 0) : 0;
    /** Calls of this round that have run. */
    let runs: ToolRun[] = [];
    let spoken = new Sentences((sentence) => notices.speak(sentence), plain(content).length);
    for (const name of ["finish", "failure", "failureDetail", "needed"] as const) delete turn[name];
    const show = throttle(SHOW_MS, () => {
      turn.content = content;
      if (thinking) turn.thinking = thinking;
    });
    const save = throttle(SAVE_MS, () => {
      show.flush();
      spoken.push(plain(content));
      // Losing one of these is no harm: the end is saved with care.
      void chats()
        .save(turn)
        .catch(() => {});
    });
    const first = () => (turn.firstToken ??= performance.now() - (job.begun ?? 0));
    try {
      for await (const event of events) {
        if (event.type === "media") {
          job.media = event;
          continue;
        }
        if (event.type === "prefill") {
          job.phase = "reading";
          job.read = { done: event.done, total: event.total };
        } else if (event.type === "canvas" || event.type === "step") {
          first();
          job.phase = "writing";
          job.canvas = event;
          continue;
        } else if (event.type === "text") {
          first();
          job.phase = "writing";
          job.canvas = undefined;
          content += event.text;
        } else if (event.type === "thinking") {
          first();
          job.phase = "thinking";
          thinking += event.text;
        } else if (event.type === "tool_call") {
          first();
          // From here on it waits for the tool, or for consent.
          job.phase = "writing";
          turn.toolCalls = [...(turn.toolCalls ?? []), event.call];
        } else if (event.type === "tool_result") {
          const { call, content: result, isError } = event;
          runs.push({ ...call, result, ...(isError ? { isError } : {}) });
          turn.toolCalls = turn.toolCalls?.slice(1) ?? [];
          if (runs.length === 1)
            turn.steps = [...(turn.steps ?? []), { content, calls: [], ...(thinking ? { thinking } : {}) }];
          const step = turn.steps?.at(-1);
          if (step) step.calls = [...runs];
          if (turn.toolCalls.length === 0) {
            // The next round writes its own words.
            spoken.end(plain(content));
            spoken = new Sentences((sentence) => notices.speak(sentence));
            [content, thinking, runs] = ["", "", []];
            delete turn.toolCalls;
            delete turn.thinking;
          }
        } else if (event.type === "bad_call") turn.badCalls = [...(turn.badCalls ?? []), event.raw];
        else if (event.type === "done") {
          turn.finish = event.finish;
          turn.usage = { ...event.usage, answerTokens: before + event.usage.answerTokens };
        }
        show();
        save();
      }
    } finally {
      turn.content = content;
      if (thinking) turn.thinking = thinking;
      show.flush();
      save.flush();
    }
    if (turn.finish === "cancelled") notices.speak(t("turn.stopped"));
    else if (spoken.end(plain(content)) === 0) notices.speak(t("turn.empty"));
  }

  async #failed(turn: Turn, error: unknown, path: readonly Turn[], elsewhere: boolean): Promise<void> {
    const code = codeOf(error);
    turn.finish = code === "cancelled" ? "cancelled" : "failed";
    if (code === "cancelled") return;
    const failure = describe(error);
    turn.failure = code;
    if (failure.detail) turn.failureDetail = failure.detail;
    notices.speak(titleOf(failure));
    if (code === "context_full") {
      const sizes = await Promise.all(path.map((one) => this.#sizeOf(one))).catch(() => []);
      turn.needed = sizes.reduce((sum, size) => sum + size, 0);
    }
    if (model.api && !elsewhere && (code === "device_lost" || code === "freed")) model.drop(error);
  }
}

/** Settles with a promise, or as soon as a signal aborts. */
async function untilAborted(promise: Promise<unknown>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  let wake = () => {};
  const aborted = new Promise<void>((resolve) => (wake = resolve));
  signal.addEventListener("abort", wake, { once: true });
  await Promise.race([promise, aborted]);
  signal.removeEventListener("abort", wake);
}

export const answer = new Answer();
