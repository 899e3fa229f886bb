// What the user chose, kept in this browser and shared by its tabs.

import type { ImageTokens, DenoisingOptions } from "rullama";
import { readSampling, readDenoising, type Sampling } from "../lib/options.js";
import { isLanguage, type Language } from "../text/index.svelte.js";

/** A system prompt with sampling settings, under a name. */
export interface Preset {
  id: string;
  name: string;
  system: string;
  sampling: Sampling;
  think: boolean;
  /** Tools that it offers; as they are where absent. */
  tools?: string[];
}

/** An MCP server that the user added. */
export interface Server {
  id: string;
  name: string;
  url: string;
  /** A bearer token, sent to this server alone. */
  token?: string;
}

/** A message that was saved under a name. */
export interface Prompt {
  id: string;
  name: string;
  text: string;
}

const MOST_PRESETS = 100;
const MOST_FOLDERS = 200;
const MOST_PROMPTS = 500;
/** Characters of a folder's or a prompt's name. */
export const MOST_NAME = 100;
const MOST_SERVERS = 20;
const MOST_TOOLS = 200;

export interface Settings {
  theme: "system" | "light" | "dark";
  language: Language | "system";
  sampling: Sampling;
  /** Denoising options of diffusion models, and whether the canvas is shown. */
  denoising: DenoisingOptions;
  watch: boolean;
  /** What drafts for models: their own drafter, what was said before, or nothing. */
  draft: "own" | "ngram" | "off";
  /** System prompt of conversations that have none of their own. */
  system: string;
  /** Let models think first, where they can. */
  think: boolean;
  /** Most tokens of an image. */
  images: ImageTokens;
  /** Tokens of prompt and answer together. */
  context: number;
  cache: "f32" | "f16" | "q8";
  /** Keep downloads for the next time and for offline use. */
  keep: boolean;
  /** System prompts with settings that were saved for other chats. */
  presets: Preset[];
  /** Draw Mermaid diagrams without being asked to. */
  diagrams: boolean;
  /** Folders of chats, by their names: also those without a chat. */
  folders: string[];
  /** Messages that were saved for later. */
  prompts: Prompt[];
  /** Let the model name chats after their first answer. */
  titles: boolean;
  /** Say on iPhones and iPads that the app can be installed, until that was read. */
  installHint: boolean;
  /** Load the model that was used last when the app starts. */
  autoload: boolean;
  /** Tools that chats offer, where they have no choice of their own. */
  tools: string[];
  /** Tools that may run in all chats without asking. */
  allowedTools: string[];
  /** MCP servers whose tools can be offered. */
  servers: Server[];
  /** The adapter that chats answer with, where the model has it, and how much of it. */
  adapter?: { id: string; weight: number };
  /** The model that was used last: the name or address it can be loaded by again, and what to call it. */
  lastModel?: { source: string; name: string; projector?: string };
}

export const CONTEXT = { least: 256, most: 262_144, whole: true };
export const IMAGE_TOKENS: ImageTokens[] = [70, 140, 280, 560, 1120];
const KEY = "rullama-settings";

export const defaults = (): Settings => ({
  theme: "system",
  language: "system",
  sampling: {},
  denoising: {},
  watch: true,
  draft: "own",
  system: "",
  think: false,
  images: 280,
  context: 4096,
  cache: "f16",
  keep: true,
  autoload: true,
  presets: [],
  titles: false,
  diagrams: false,
  folders: [],
  prompts: [],
  installHint: true,
  tools: [],
  allowedTools: [],
  servers: [],
});

/** Settings of a stored text; what makes no sense in it is replaced by defaults. */
export function parse(text: string | null): Settings {
  const settings = defaults();
  let value: unknown;
  try {
    value = JSON.parse(text ?? "{}");
  } catch {
    return settings;
  }
  if (typeof value !== "object" || value === null) return settings;
  const from = value as Record<string, unknown>;
  settings.sampling = readSampling(from.sampling);
  settings.denoising = readDenoising(from.denoising ?? from.settle);
  if (typeof from.watch === "boolean") settings.watch = from.watch;
  if (from.draft === "ngram" || from.draft === "off") settings.draft = from.draft;
  if (from.theme === "light" || from.theme === "dark") settings.theme = from.theme;
  if (isLanguage(from.language)) settings.language = from.language;
  if (typeof from.system === "string") settings.system = from.system;
  if (typeof from.think === "boolean") settings.think = from.think;
  if (typeof from.keep === "boolean") settings.keep = from.keep;
  if (typeof from.titles === "boolean") settings.titles = from.titles;
  if (typeof from.diagrams === "boolean") settings.diagrams = from.diagrams;
  if (Array.isArray(from.folders)) {
    const names = from.folders.filter((name) => typeof name === "string" && name !== "" && name.length <= MOST_NAME);
    settings.folders = [...new Set(names as string[])].slice(0, MOST_FOLDERS);
  }
  if (Array.isArray(from.prompts)) settings.prompts = from.prompts.slice(0, MOST_PROMPTS).flatMap(readPrompt);
  if (Array.isArray(from.presets)) settings.presets = from.presets.slice(0, MOST_PRESETS).flatMap(readPreset);
  if (typeof from.installHint === "boolean") settings.installHint = from.installHint;
  settings.tools = readKeys(from.tools) ?? [];
  settings.allowedTools = readKeys(from.allowedTools) ?? [];
  if (Array.isArray(from.servers)) settings.servers = from.servers.slice(0, MOST_SERVERS).flatMap(readServer);
  if (typeof from.autoload === "boolean") settings.autoload = from.autoload;
  if (from.cache === "f32" || from.cache === "q8") settings.cache = from.cache;
  // Settings of version 0.6 have the key `pictures`.
  const images = from.images ?? from.pictures;
  settings.images = IMAGE_TOKENS.find((tokens) => tokens === images) ?? settings.images;
  const { context } = from;
  if (typeof context === "number" && Number.isInteger(context) && context >= CONTEXT.least && context <= CONTEXT.most) {
    settings.context = context;
  }
  const { source, name, projector } = (from.lastModel ?? {}) as Record<string, unknown>;
  if (typeof source === "string" && source && typeof name === "string") {
    settings.lastModel = { source, name, ...(typeof projector === "string" && projector ? { projector } : {}) };
  }
  const { id, weight } = (from.adapter ?? {}) as Record<string, unknown>;
  if (typeof id === "string" && id && typeof weight === "number" && Number.isFinite(weight)) {
    settings.adapter = { id, weight };
  }
  return settings;
}

/** A list of names of tools; nothing where it is none. */
export function readKeys(value: unknown): string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  return [...new Set(value.filter((one): one is string => typeof one === "string"))].slice(0, MOST_TOOLS);
}

/** An address that the page's policy lets it connect to: https, or this machine. */
export function serverAddress(text: string): string | undefined {
  const url = URL.canParse(text.trim()) ? new URL(text.trim()) : undefined;
  if (!url || url.username || url.password) return undefined;
  const local = url.protocol === "http:" && (url.hostname === "127.0.0.1" || url.hostname === "localhost");
  return url.protocol === "https:" || local ? url.href : undefined;
}

function readServer(value: unknown): Server[] {
  const { id, name, url, token } = (value ?? {}) as Record<string, unknown>;
  const address = typeof url === "string" ? serverAddress(url) : undefined;
  if (typeof id !== "string" || typeof name !== "string" || address === undefined) return [];
  return [{ id, name, url: address, ...(typeof token === "string" && token ? { token } : {}) }];
}

function readPreset(value: unknown): Preset[] {
  const { id, name, system, sampling, think, tools } = (value ?? {}) as Record<string, unknown>;
  if (typeof id !== "string" || typeof name !== "string" || typeof system !== "string" || !name) return [];
  const keys = readKeys(tools);
  const offered = keys ? { tools: keys } : {};
  return [{ id, name, system, sampling: readSampling(sampling), think: think === true, ...offered }];
}

function readPrompt(value: unknown): Prompt[] {
  const { id, name, text } = (value ?? {}) as Record<string, unknown>;
  if (typeof id !== "string" || typeof name !== "string" || typeof text !== "string" || !name || !text) return [];
  return [{ id, name: name.slice(0, MOST_NAME), text }];
}

function stored(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

export const settings = $state<Settings>(parse(stored()));

/** Changes settings, here and in other tabs. */
export function change(fields: Partial<Settings>): void {
  Object.assign(settings, fields);
  try {
    localStorage.setItem(KEY, JSON.stringify(settings));
  } catch {
    // A window that keeps nothing still works with what was chosen.
  }
}

/** Follows changes of other tabs. */
export function watch(): () => void {
  const changed = (event: StorageEvent) => {
    if (event.key === KEY) Object.assign(settings, parse(event.newValue));
  };
  addEventListener("storage", changed);
  return () => removeEventListener("storage", changed);
}
