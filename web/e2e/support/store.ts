// An Ollama store in a folder of its own, made of golden files.
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "./program.ts";

/** Where its models come from, as manifests have it. */
const PLACE = "example.org/tests";
const TYPE = "application/vnd.ollama.image.";

interface Layer {
  mediaType: string;
  digest: string;
  size: number;
}

export class Store {
  private constructor(readonly folder: string) {}

  static async make(): Promise<Store> {
    const store = new Store(await mkdtemp(join(tmpdir(), "rullama-store-")));
    await mkdir(join(store.folder, "blobs"));
    return store;
  }

  /** Adds a model of files in `goldens/`, by the kinds of their layers (`model`, `projector`, `draft`); gives the name it is served by. */
  async add(name: string, files: Record<string, string>): Promise<string> {
    const layers: Layer[] = [];
    for (const [kind, file] of Object.entries(files)) {
      layers.push(await this.blob(`${TYPE}${kind}`, await readFile(join(ROOT, "goldens", file))));
    }
    const facts = JSON.stringify({ model_format: "gguf", model_family: "gemma4", model_families: ["gemma4"] });
    const config = await this.blob("application/vnd.docker.container.image.v1+json", Buffer.from(facts));
    const folder = join(this.folder, "manifests", PLACE, name);
    await mkdir(folder, { recursive: true });
    const manifest = {
      schemaVersion: 2,
      mediaType: "application/vnd.docker.distribution.manifest.v2+json",
      config,
      layers,
    };
    await writeFile(join(folder, "latest"), JSON.stringify(manifest));
    return `${PLACE}/${name}:latest`;
  }

  private async blob(mediaType: string, bytes: Buffer): Promise<Layer> {
    const digest = createHash("sha256").update(bytes).digest("hex");
    await writeFile(join(this.folder, "blobs", `sha256-${digest}`), bytes);
    return { mediaType, digest: `sha256:${digest}`, size: bytes.length };
  }

  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}
