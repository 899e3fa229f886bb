// Names of the files of a split model: `model-00001-of-00003.gguf` and so on.

import { RullamaError } from "../errors.js";

const PART = /-(\d{5})-of-(\d{5})(?=\.gguf$)/iu;
/** Far more than any model has. */
const MOST_PARTS = 999;

/** Which part of a split model a file is, by its name: `…-00002-of-00003.gguf`. */
export function splitPart(path: string): { part: number; of: number } | undefined {
  const [, part, of] = PART.exec(path) ?? [];
  return part === undefined || Number(of) < 2 ? undefined : { part: Number(part), of: Number(of) };
}

/** The names of all parts, in order, from that of one; undefined where it is a whole file. */
export function partNames(path: string): string[] | undefined {
  const split = splitPart(path);
  if (!split) return undefined;
  const { part, of } = split;
  if (part < 1 || part > of || of > MOST_PARTS) {
    throw new RullamaError("bad_options", `${path} cannot be part ${part} of ${of}`);
  }
  const number = (value: number) => String(value).padStart(5, "0");
  return Array.from({ length: of }, (_, index) => path.replace(PART, `-${number(index + 1)}-of-${number(of)}`));
}

/** The addresses of all parts, from that of one. */
export function partAddresses(address: URL): URL[] | undefined {
  return partNames(address.pathname)?.map((path) => {
    const part = new URL(address);
    part.pathname = path;
    return part;
  });
}

/** What a split model is called: its name without the number. */
export const wholeName = (path: string): string => path.replace(PART, "");

/** Picked files in the order of their numbers; fails with advice where one is missing. */
export function orderParts<T extends { name: string }>(files: readonly T[]): T[] {
  const [first] = files;
  const names = first && partNames(first.name);
  if (!first || !names) {
    const advice = "pick the files of one split model, `…-00001-of-0000N.gguf`, or a single file";
    throw new RullamaError("bad_options", `several files are not one model: ${advice}`);
  }
  const found = names.map((name) => files.find((file) => file.name === name));
  const missing = names.filter((_, index) => found[index] === undefined);
  if (missing.length > 0) {
    throw new RullamaError("not_found", `${missing.join(", ")} missing: pick all ${names.length} parts of the model`);
  }
  if (files.length > names.length) {
    throw new RullamaError("bad_options", `only the ${names.length} parts of one model can be opened together`);
  }
  return found as T[];
}
