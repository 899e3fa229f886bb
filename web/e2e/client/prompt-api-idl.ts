// What the IDL of the Prompt API says about the classes that are installed in this window. Runs in the page.

interface Interface {
  parent?: Function;
  /** Required arguments of the constructor; none where there is no public one. */
  arguments?: number;
  statics?: Record<string, number>;
  /** Required arguments; those that do not return promises throw. */
  operations?: Record<string, number>;
  readonly?: string[];
  attributes?: string[];
}

const SYNCHRONOUS = new Set(["promptStreaming", "destroy"]);

const INTERFACES: Record<string, Interface> = {
  LanguageModel: {
    parent: EventTarget,
    statics: { create: 0, availability: 0 },
    operations: {
      prompt: 1,
      promptStreaming: 1,
      append: 1,
      measureContextUsage: 1,
      measureInputUsage: 1,
      clone: 0,
      destroy: 0,
    },
    readonly: ["contextUsage", "contextWindow", "inputUsage", "inputQuota", "samplingMode"],
    attributes: ["oncontextoverflow", "onquotaoverflow"],
  },
  CreateMonitor: { parent: EventTarget, attributes: ["ondownloadprogress"] },
  LanguageModelToolCall: { arguments: 1, readonly: ["callId", "name", "arguments"] },
  LanguageModelToolSuccess: { arguments: 1, readonly: ["callId", "name", "result"] },
  LanguageModelToolError: { arguments: 1, readonly: ["callId", "name", "errorMessage"] },
};

type Callable = (this: unknown, ...all: unknown[]) => unknown;
type AnyClass = (new (...all: unknown[]) => object) & { prototype: object };

const failures: string[] = [];
const is = (what: string, found: unknown, wanted: unknown) => {
  const [left, right] = [found, wanted].map((one) => (typeof one === "function" ? one : JSON.stringify(one)));
  if (left !== right) failures.push(`${what}: ${String(left)} instead of ${String(right)}`);
};
const nameOf = (error: unknown) => (error instanceof Error ? error.constructor.name : String(error));
const thrown = (job: () => unknown): string => {
  try {
    job();
    return "nothing";
  } catch (error) {
    return nameOf(error);
  }
};
/** Rejections count; exceptions that are thrown at once do not. */
const rejected = async (job: () => unknown): Promise<string> => {
  let promise: unknown;
  try {
    promise = job();
  } catch {
    return "an exception";
  }
  if (!(promise instanceof Promise)) return "no promise";
  return promise.then(() => "nothing", nameOf);
};
const flags = (one: PropertyDescriptor | undefined) =>
  one && [one.writable, one.enumerable, one.configurable].map((flag) => (flag === undefined ? "-" : flag ? "y" : "n"));

async function checkInterface(name: string, { parent, ...idl }: Interface): Promise<void> {
  is(`window.${name}`, flags(Object.getOwnPropertyDescriptor(window, name)), ["y", "n", "y"]);
  const Class = (window as unknown as Record<string, AnyClass>)[name]!;
  const { prototype } = Class;
  is(`${name}'s parent`, Object.getPrototypeOf(Class), parent ?? Function.prototype);
  is(`${name}.prototype's parent`, Object.getPrototypeOf(prototype) === (parent ?? Object).prototype, true);
  is(`${name}.prototype`, flags(Object.getOwnPropertyDescriptor(Class, "prototype")), ["n", "n", "n"]);
  is(`${name}.name`, Class.name, name);
  is(`${name}.length`, Class.length, idl.arguments ?? 0);
  for (const key of ["name", "length"]) {
    is(`${name}.${key}`, flags(Object.getOwnPropertyDescriptor(Class, key)), ["n", "n", "y"]);
  }
  is(`${name}()`, thrown(Class as never), "TypeError");
  is(
    `new ${name}()`,
    thrown(() => new Class()),
    "TypeError",
  );
  is(`${name}'s constructor`, flags(Object.getOwnPropertyDescriptor(prototype, "constructor")), ["y", "n", "y"]);
  is(`${name}'s tag`, flags(Object.getOwnPropertyDescriptor(prototype, Symbol.toStringTag)), ["n", "n", "y"]);
  is(`${name}'s tag`, Object.prototype.toString.call(prototype), `[object ${name}]`);
  is(`${name} has unscopables`, Symbol.unscopables in prototype, false);
  for (const [key, length] of Object.entries(idl.statics ?? {})) {
    checkOperation(`${name}.${key}`, Class, key, length);
  }
  for (const [key, length] of Object.entries(idl.operations ?? {})) {
    const call = checkOperation(`${name}#${key}`, prototype, key, length);
    for (const that of [{}, undefined, prototype]) {
      const job = () => call.call(that, "x");
      is(`${name}#${key} without brand`, SYNCHRONOUS.has(key) ? thrown(job) : await rejected(job), "TypeError");
    }
  }
  for (const key of [...(idl.readonly ?? []), ...(idl.attributes ?? [])]) checkAttribute(name, prototype, key, idl);
}

function checkOperation(what: string, holder: object, key: string, length: number): Callable {
  const found = Object.getOwnPropertyDescriptor(holder, key);
  is(what, flags(found), ["y", "y", "y"]);
  const call = found!.value as Callable;
  is(`${what}'s kind`, [typeof call, call.name, call.length], ["function", key, length]);
  is(`${what}'s prototype`, Object.getPrototypeOf(call), Function.prototype);
  is(
    `new ${what}`,
    thrown(() => Reflect.construct(call, [])),
    "TypeError",
  );
  return call;
}

function checkAttribute(name: string, prototype: object, key: string, idl: Omit<Interface, "parent">): void {
  const what = `${name}#${key}`;
  const found = Object.getOwnPropertyDescriptor(prototype, key);
  is(what, flags(found), ["-", "y", "y"]);
  const { get, set } = found!;
  is(`${what}'s getter`, [get!.name, get!.length], [`get ${key}`, 0]);
  is(
    `${what} on the prototype`,
    thrown(() => (prototype as Record<string, unknown>)[key]),
    "TypeError",
  );
  is(
    `${what} without brand`,
    thrown(() => get!.call({})),
    "TypeError",
  );
  if (idl.readonly?.includes(key)) is(`${what}'s setter`, set === undefined, true);
  else
    is(`${what}'s setter`, [set?.name, set?.length, thrown(() => set?.call({}, null))], [`set ${key}`, 1, "TypeError"]);
}

/** What an instance shows. */
async function checkSession(session: EventTarget): Promise<void> {
  is("own members", Object.getOwnPropertyNames(session), []);
  is("text", String(session), "[object LanguageModel]");
  const one = session as unknown as Record<string, Callable & unknown>;
  is(
    "types",
    [typeof one["contextUsage"], typeof one["contextWindow"], one["samplingMode"]],
    ["number", "number", "balanced"],
  );
  for (const key of ["prompt", "append", "measureContextUsage", "measureInputUsage"]) {
    is(`${key}()`, await rejected(() => one[key]!()), "TypeError");
  }
  is(
    "promptStreaming()",
    thrown(() => one["promptStreaming"]!()),
    "TypeError",
  );
  for (const key of INTERFACES["LanguageModel"]!.attributes!) {
    is(`${key} at first`, one[key] as unknown, null);
    const handler = () => {};
    Reflect.set(session, key, handler);
    is(`${key} when set`, one[key] as unknown, handler);
    Reflect.set(session, key, "no function");
    is(`${key} when set to a string`, one[key] as unknown, null);
  }
  is("a write to contextUsage", Reflect.set(session, "contextUsage", 1), false);
  is(
    "raw parameters",
    ["topK", "temperature"].map((key) => key in session),
    [false, false],
  );
}

/** Differences from the IDL. */
export async function idlFailures(session: EventTarget): Promise<string[]> {
  failures.length = 0;
  is("a secure context", isSecureContext, true);
  is("params", "params" in (window as unknown as { LanguageModel: object }).LanguageModel, false);
  for (const [name, idl] of Object.entries(INTERFACES)) await checkInterface(name, idl);
  await checkSession(session);
  return failures;
}
