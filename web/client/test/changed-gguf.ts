// Golden models with other metadata: their header is written anew, their tensors stay.

type Reader = { bytes: Uint8Array; view: DataView; at: number };

/** Sizes of the format's scalar types, by number; 8 is a string, 9 an array. */
const SIZES: Record<number, number> = { 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8 };
const STRING = 8;
const ARRAY = 9;
/** Where no key says otherwise, tensors begin at multiples of this. */
const ALIGNMENT = 32;

/** A new value: a text, the strings of an array, or nothing. */
export type Change = string | ((old: string[]) => string[]) | undefined;

/** A model file with some keys changed; a key that is `undefined` is dropped. Keys that the file lacks are added, if they are texts. */
export function changedGguf(file: Uint8Array, changes: Record<string, Change>): Uint8Array<ArrayBuffer> {
  const reader: Reader = { bytes: file, view: new DataView(file.buffer, file.byteOffset, file.byteLength), at: 8 };
  const tensors = u64(reader);
  const keys = u64(reader);
  const left = new Map(Object.entries(changes));
  const entries: Uint8Array[] = [];
  for (let i = 0; i < keys; i++) {
    const start = reader.at;
    const key = text(reader);
    const change = left.get(key);
    const isChanged = left.delete(key);
    const old = value(reader, typeof change === "function");
    if (!isChanged) entries.push(file.subarray(start, reader.at));
    else if (typeof change === "string") entries.push(textEntry(key, change));
    else if (change) entries.push(joined(textOf(key), u32Of(ARRAY), stringsOf(change(old))));
  }
  for (const [key, change] of left) if (typeof change === "string") entries.push(textEntry(key, change));
  const infos = reader.at;
  for (let i = 0; i < tensors; i++) {
    text(reader);
    const dimensions = u32(reader);
    reader.at += 8 * dimensions + 4 + 8;
  }
  const head = joined(file.subarray(0, 8), u64Of(tensors), u64Of(entries.length), ...entries);
  const whole = joined(head, file.subarray(infos, reader.at));
  const data = aligned(reader.at);
  return joined(whole, new Uint8Array(aligned(whole.length) - whole.length), file.subarray(data));
}

const aligned = (at: number) => Math.ceil(at / ALIGNMENT) * ALIGNMENT;

function u32(reader: Reader): number {
  reader.at += 4;
  return reader.view.getUint32(reader.at - 4, true);
}

function u64(reader: Reader): number {
  reader.at += 8;
  return Number(reader.view.getBigUint64(reader.at - 8, true));
}

function text(reader: Reader): string {
  const length = u64(reader);
  reader.at += length;
  return new TextDecoder().decode(reader.bytes.subarray(reader.at - length, reader.at));
}

/** Skips a value; the strings of an array are returned where they are wanted. */
function value(reader: Reader, wanted: boolean): string[] {
  const type = u32(reader);
  if (type === STRING) text(reader);
  else if (type === ARRAY) return array(reader, wanted);
  else reader.at += SIZES[type]!;
  return [];
}

function array(reader: Reader, wanted: boolean): string[] {
  const type = u32(reader);
  const count = u64(reader);
  const strings: string[] = [];
  for (let i = 0; i < count; i++) {
    if (type !== STRING) {
      reader.at += SIZES[type]!;
      continue;
    }
    const string = text(reader);
    if (wanted) strings.push(string);
  }
  return strings;
}

const u32Of = (number: number) => new Uint8Array(Uint32Array.of(number).buffer);
const u64Of = (number: number) => new Uint8Array(BigUint64Array.of(BigInt(number)).buffer);

function textOf(string: string): Uint8Array {
  const bytes = new TextEncoder().encode(string);
  return joined(u64Of(bytes.length), bytes);
}

const stringsOf = (strings: string[]) => joined(u32Of(STRING), u64Of(strings.length), ...strings.map(textOf));
const textEntry = (key: string, string: string) => joined(textOf(key), u32Of(STRING), textOf(string));

function joined(...parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** A template of no known family, with what templates have: a system message, tools, results, images and thoughts. */
export const OTHER_TEMPLATE = `{{- bos_token -}}
{%- if tools %}[TOOLS]{% for tool in tools %}{{ tool.function | tojson }};{% endfor %}[/TOOLS]
{% endif -%}
{%- for message in messages -%}
[{{ message.role | upper }}]
{%- if message.content is string %}{{ message.content }}{% else -%}
{%- for part in message.content %}{% if part.type == 'text' %}{{ part.text }}{% else %}<|{{ part.type }}|>{% endif %}{% endfor -%}
{%- endif -%}
{%- for call in message.tool_calls or [] %}<tool_call>{{ call.function | tojson }}</tool_call>{% endfor -%}
{{ eos_token }}
{%- endfor -%}
{%- if add_generation_prompt %}[ASSISTANT]{% if enable_thinking %}<think>{% endif %}{% endif -%}`;

/** A MedGemma of a golden Gemma 3: its thoughts' tokens take the place of FunctionGemma's. */
export function medGemma(file: Uint8Array): Uint8Array<ArrayBuffer> {
  const markers = new Map([
    ["<start_function_declaration>", "<unused94>"],
    ["<end_function_declaration>", "<unused95>"],
  ]);
  return changedGguf(file, {
    "general.name": "MedGemma Micro",
    "tokenizer.chat_template": undefined,
    "tokenizer.ggml.tokens": (tokens) => tokens.map((token) => markers.get(token) ?? token),
  });
}
