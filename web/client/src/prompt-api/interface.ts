// Classes and attributes with the shape that Web IDL gives them.

/** A class as Web IDL has interfaces: members are enumerable and plain functions, the tag is its name, `length` counts required arguments. */
export function asInterface<T extends abstract new (...args: never[]) => object>(
  Class: T,
  name: string,
  length = 0,
): T {
  const holders: [object, string[]][] = [
    [Class, ["prototype", "name", "length"]],
    [Class.prototype as object, ["constructor"]],
  ];
  for (const [holder, others] of holders) {
    for (const [key, member] of Object.entries(Object.getOwnPropertyDescriptors(holder))) {
      if (others.includes(key)) continue;
      // Asynchronous functions have a prototype of their own.
      if (typeof member.value === "function") Object.setPrototypeOf(member.value, Function.prototype);
      Object.defineProperty(holder, key, { ...member, enumerable: true });
    }
  }
  Object.defineProperty(Class.prototype, Symbol.toStringTag, { value: name, configurable: true });
  Object.defineProperty(Class, "name", { value: name, configurable: true });
  Object.defineProperty(Class, "length", { value: length, configurable: true });
  return Class;
}

/** An event handler attribute: called in the order of listeners since it was last null; what is no function is null. */
export class HandlerAttribute<E extends Event> {
  private handler: ((event: E) => unknown) | null = null;
  private readonly listener = (event: Event) => void this.handler?.call(this.target, event as E);

  constructor(
    private readonly target: EventTarget,
    private readonly type: string,
  ) {}

  get value(): ((event: E) => unknown) | null {
    return this.handler;
  }

  set value(value: unknown) {
    this.handler = typeof value === "function" ? (value as (event: E) => unknown) : null;
    // Adding it again changes nothing, so that a handler that replaces another is called in its place.
    if (this.handler === null) this.target.removeEventListener(this.type, this.listener);
    else this.target.addEventListener(this.type, this.listener);
  }
}
