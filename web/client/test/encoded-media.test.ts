import { describe, expect, it } from "vitest";
import { CancelledError, RullamaError } from "../src/errors.js";
import { blobOf, fromBase64 } from "../src/media-bytes.js";
import { EncodedMedia, mediaOf } from "../src/encoded-media.js";
import { messagesOf } from "../src/openai.js";
import type { Transport } from "../src/protocol.js";
import { chatRequest } from "../src/sampling.js";
import { wavRate } from "../src/audio.js";
import type { ContentPart, Message } from "../src/types.js";
import { frameTimes } from "../src/video.js";

const samples = { samples: new Float32Array(4), sampleRate: 16_000 };
const asked = (...content: ContentPart[]): Message[] => [{ role: "user", content }];

describe("parts of messages", () => {
  it("leave places behind, and what they show in order", () => {
    const messages = asked(
      { type: "image", image: "a.png" },
      { type: "text", text: "and" },
      { type: "input_audio", input_audio: { data: "AAEC" } },
      { type: "image_url", image_url: { url: "b.png", detail: "low" } },
      { type: "video", video: "c.webm" },
    );
    expect(chatRequest(messages, {}).messages).toEqual([
      {
        role: "user",
        content: [
          { type: "image" },
          { type: "text", text: "and" },
          { type: "audio" },
          { type: "image" },
          { type: "video" },
        ],
      },
    ]);
    expect(mediaOf(messages)).toEqual([
      { kind: "image", source: "a.png", tokens: 280 },
      { kind: "audio", source: new Uint8Array([0, 1, 2]) },
      { kind: "image", source: "b.png", tokens: 70 },
      { kind: "video", source: "c.webm" },
    ]);
  });

  it("of text alone are one text in OpenAI's shape, and unknown ones are refused", () => {
    const text = (said: string) => ({ type: "text" as const, text: said });
    expect(messagesOf([{ role: "user", content: [text("a"), text("b")] }])).toEqual([{ role: "user", content: "ab" }]);
    const strange = [{ type: "file" }] as unknown as ContentPart[];
    expect(() => messagesOf([{ role: "user", content: strange }])).toThrow("file");
  });

  it("may be inside of addresses", async () => {
    for (const head of ["data:audio/webm;codecs=opus;base64", "data:audio/webm;base64"]) {
      const blob = await blobOf(`${head},AAEC`);
      expect(blob.type).toBe("audio/webm");
      expect(new Uint8Array(await blob.arrayBuffer())).toEqual(new Uint8Array([0, 1, 2]));
    }
    expect(await (await blobOf("data:,a%20b")).text()).toBe("a b");
  });

  it("are not believed to be base64", () => {
    expect(fromBase64("data:audio/wav;base64,AAEC")).toEqual(new Uint8Array([0, 1, 2]));
    expect(() => fromBase64("no base64!")).toThrow(RullamaError);
  });
});

describe("what was encoded", () => {
  /** An engine that numbers what it is shown. */
  function engine() {
    const calls: string[] = [];
    let next = 1;
    const call = async (kind: string, params: { medium: unknown }) => {
      calls.push(kind === "encode" ? kind : `${kind} ${String(params.medium)}`);
      return kind === "encode" ? next++ : undefined;
    };
    return { calls, transport: { call } as unknown as Transport };
  }

  it("is encoded for a second request when the first is cancelled", async () => {
    let calls = 0;
    const call = (_kind: string, _params: object, { signal }: { signal?: AbortSignal }) => {
      calls += 1;
      if (calls > 1) return Promise.resolve(7);
      return new Promise((_, reject) => signal!.addEventListener("abort", () => reject(new CancelledError())));
    };
    const encodedMedia = new EncodedMedia({ call } as unknown as Transport, 1);
    const media = mediaOf(asked({ type: "audio", audio: samples }));
    const stop = new AbortController();
    const first = encodedMedia.fill({ options: {} }, media, stop.signal);
    const second = encodedMedia.fill({ options: {} }, media, new AbortController().signal);
    await new Promise((resolve) => setTimeout(resolve, 5));
    stop.abort();
    await expect(first).rejects.toBeInstanceOf(CancelledError);
    expect(await second).toMatchObject({ media: [7] });
    expect(calls).toBe(2);
  });

  it("is remembered by what it came as, and the oldest is forgotten", async () => {
    const { calls, transport } = engine();
    const encodedMedia = new EncodedMedia(transport, 1);
    const show = async (...shown: (typeof samples)[]) => {
      const media = shown.map((source) => ({ kind: "audio" as const, source }));
      return (await encodedMedia.fill({ options: {} }, media)).media;
    };
    const other = { ...samples };
    expect(await show(samples, other, samples)).toEqual([1, 2, 1]);
    expect(await show(other)).toEqual([2]);
    expect(calls).toEqual(["encode", "encode"]);
    for (let i = 0; i < 31; i++) await show({ ...samples });
    expect(calls.at(-1)).toBe("forget 1");
    expect(await show(samples)).toEqual([34]);
  });

  it("is told as it is decoded and encoded, and not where it is known already", async () => {
    const encodedMedia = new EncodedMedia(engine().transport, 1);
    const told: string[] = [];
    const fill = (count: number) =>
      encodedMedia.fill(
        { options: {} },
        [samples, { ...samples }].slice(0, count).map((source) => ({ kind: "audio", source })),
        undefined,
        ({ kind, phase, index, total }) => told.push(`${phase} ${kind} ${index + 1}/${total}`),
      );
    await fill(2);
    expect(told).toEqual(["decode audio 1/2", "encode audio 1/2", "decode audio 2/2", "encode audio 2/2"]);
    told.length = 0;
    await fill(1);
    expect(told).toEqual([]);
  });

  it("is asked for anew after a failure", async () => {
    let broken = true;
    const call = async () => {
      if (broken) throw new RullamaError("bad_media", "broken");
      return 7;
    };
    const encodedMedia = new EncodedMedia({ call } as unknown as Transport, 1);
    const fill = () => encodedMedia.fill({ options: {} }, [{ kind: "audio", source: samples }]);
    await expect(fill()).rejects.toThrow("broken");
    broken = false;
    expect((await fill()).media).toEqual([7]);
  });
});

describe("the frames of a video", () => {
  it("are a second apart, and of a long one an even choice", () => {
    expect(frameTimes(0)).toEqual([0]);
    expect(frameTimes(0.4)).toEqual([0]);
    expect(frameTimes(3)).toEqual([0, 1, 2]);
    const long = frameTimes(320);
    expect(long).toHaveLength(32);
    expect([long[1], long.at(-1)]).toEqual([10, 310]);
  });
});

describe("the rate of a WAV file", () => {
  const wav = (rate: number, before: number[] = []) => {
    const text = (word: string) => [...word].map((letter) => letter.charCodeAt(0));
    const format = [...text("fmt "), 16, 0, 0, 0, 1, 0, 1, 0, ...new Uint8Array(new Uint32Array([rate]).buffer)];
    return new Uint8Array([...text("RIFF"), 0, 0, 0, 0, ...text("WAVE"), ...before, ...format]).buffer;
  };

  it("is read behind other chunks, and not believed when absurd", () => {
    expect(wavRate(wav(16_000))).toBe(16_000);
    const odd = [..."LIST"].map((letter) => letter.charCodeAt(0));
    expect(wavRate(wav(44_100, [...odd, 3, 0, 0, 0, 1, 2, 3, 0]))).toBe(44_100);
    expect(wavRate(wav(1))).toBeUndefined();
    expect(wavRate(new ArrayBuffer(3))).toBeUndefined();
  });
});
