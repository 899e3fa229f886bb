// Addresses and names of Hugging Face: `https://huggingface.co/org/repo/blob/main/x.gguf`, `hf.co/org/repo:Q4_K_M`, `org/repo`.

const HOST = "https://huggingface.co";
const PART = /^[\w.-]{1,96}$/u;

export interface Place {
  repository: string;
  revision: string;
  /** A file of it, where one is named. */
  file?: string;
  /** A quantisation, where one is named. */
  quant?: string;
}

/** A file that a repository offers. */
export interface Offered {
  path: string;
  size: number;
}

/** What a text names at Hugging Face; undefined where it is something else. */
export function placeOf(text: string): Place | undefined {
  const named = text.trim().replace(/^(?:https?:\/\/)?(?:www\.)?(?:huggingface\.co|hf\.co)\//iu, "");
  if (named === text.trim() && /^[a-z]+:\/\//iu.test(named)) return undefined;
  const [path = "", quant] = named.replace(/[?#].*$/u, "").split(":", 2);
  const [owner = "", repo = "", kind, revision = "main", ...rest] = path.replace(/\/+$/u, "").split("/");
  if (!PART.test(owner) || !PART.test(repo) || /^\.+$/u.test(owner) || /^\.+$/u.test(repo)) return undefined;
  const place: Place = { repository: `${owner}/${repo}`, revision, ...(quant ? { quant } : {}) };
  if (kind === undefined || kind === "tree") return place;
  if (!["blob", "resolve", "raw"].includes(kind) || rest.length === 0) return undefined;
  return { ...place, file: rest.map(decoded).join("/") };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Where a file can be read from. */
export function addressOf({ repository, revision }: Pick<Place, "repository" | "revision">, file: string): string {
  return `${HOST}/${repository}/resolve/${revision}/${file.split("/").map(encodeURIComponent).join("/")}`;
}

/** The GGUF files of a repository, those of the wanted quantisation first. */
export async function filesOf({ repository, revision, quant }: Place, signal?: AbortSignal): Promise<Offered[]> {
  const address = `${HOST}/api/models/${repository}/tree/${encodeURIComponent(revision)}?recursive=true`;
  const response = await fetch(address, { signal, credentials: "omit", referrerPolicy: "no-referrer" });
  if (!response.ok) throw new Error(`${response.status}`);
  const listed: unknown = await response.json();
  if (!Array.isArray(listed)) throw new Error("not a list");
  const files = listed.flatMap((one: unknown): Offered[] => {
    const { path, size, type } = (one ?? {}) as Record<string, unknown>;
    const fine = type === "file" && typeof path === "string" && typeof size === "number" && size > 0;
    return fine && /\.gguf$/iu.test(path) ? [{ path, size }] : [];
  });
  const wanted = (path: string) => quant !== undefined && path.toLowerCase().includes(quant.toLowerCase());
  return files.sort((a, b) => Number(wanted(b.path)) - Number(wanted(a.path)) || a.size - b.size);
}

/** Whether a file holds a model's encoders, not a model. */
export const isProjector = (path: string): boolean => /(?:^|\/)mmproj[^/]*$/iu.test(path);

/** Parts of a split model are read from their first one. */
export const isLaterPart = (path: string): boolean => {
  const part = /-(\d{5})-of-\d{5}\.gguf$/iu.exec(path)?.[1];
  return part !== undefined && Number(part) > 1;
};
