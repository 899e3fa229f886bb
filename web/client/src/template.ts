// Chat templates of model files, run in a wasm module of their own: it is fetched for models whose template must be run.

import { LazyModule, TrappingInstance } from "./lazy-module.js";
import { type BytesOf, Header } from "./wasm/rullama.js";
import init, { type InitOutput, Template, __wbg_reset_state } from "./wasm/template.js";

const MODULE_FILE = new LazyModule<InitOutput>(
  {
    init,
    reset: __wbg_reset_state,
    // Bundlers look for exactly this.
    address: () => new URL("./wasm/template_bg.wasm", import.meta.url),
  },
  "chat templates",
);

/** Fetches and compiles the module. */
export function startTemplates(address?: string): Promise<InitOutput> {
  return MODULE_FILE.start(address);
}

/** Bytes of the module's memory. */
export const templateHeap = (): number => MODULE_FILE.heap();

type Compiled = Pick<Template, "traits" | "render">;

/** What is used of the module; tests put another in its place. */
export interface TemplateModule {
  compile(source: string): Compiled;
  /** Makes a new instance; what the old one made is gone. */
  restart(): void;
}

/** An instance of the module. */
export class TemplateInstance extends TrappingInstance {
  constructor(private readonly module: TemplateModule) {
    const trapped = "the model's chat template failed: it broke the engine that ran it";
    super(() => module.restart(), { what: "chat templates", trapped });
  }

  compile(source: string): Compiled {
    return this.module.compile(source);
  }
}

const INSTANCE = new TemplateInstance({
  compile: (source) => new Template(source),
  restart: () => MODULE_FILE.restart(),
});

/** The template of one model, for the engine. */
export class ModelTemplate {
  private compiled: Compiled | undefined;
  /** The instance that compiled it. */
  private number = -1;

  constructor(
    private readonly source: string,
    private readonly instance = INSTANCE,
  ) {}

  /** What the template says about its model; undefined where it is that of a family, which the engine renders. */
  traits(): string | undefined {
    return this.call((template) => template.traits());
  }

  /** The spans of a conversation's prompt. */
  render(conversation: string): string {
    return this.call((template) => template.render(conversation));
  }

  private call<T>(job: (template: Compiled) => T): T {
    const { instance } = this;
    const { number } = instance;
    return instance.call(number, () => {
      if (!this.compiled || this.number !== number) {
        this.compiled = instance.compile(this.source);
        this.number = number;
      }
      return job(this.compiled);
    });
  }
}

/** Opens the header of a file, with its chat template where that must be run. */
export async function openWithTemplate(file: BytesOf, templateWasm?: string): Promise<Header> {
  const header = await Header.open(file);
  const found = header.templateToRun();
  if (found === undefined) return header;
  const { source, isOfKnownFamily } = JSON.parse(found) as { source: string; isOfKnownFamily: boolean };
  try {
    await startTemplates(templateWasm);
  } catch (error) {
    // Offline, such a template is taken for that of the family, which it nearly always is.
    if (isOfKnownFamily) return header;
    header.free();
    throw error;
  }
  header.giveTemplate(new ModelTemplate(source));
  return header;
}
