// The microphone: one recording at a time, with a level to see that something is heard.

import { draft } from "./draft.svelte.js";
import { notices } from "./notices.svelte.js";
import { t } from "../text/index.svelte.js";

/** Models hear thirty seconds at a time. */
const LONGEST_MS = 30_000;

class Recorder {
  recording = $state(false);
  /** 0 to 1. */
  level = $state(0);
  seconds = $state(0);
  #recorder: MediaRecorder | undefined;
  #keep = true;

  async start(): Promise<void> {
    if (this.recording) return;
    let stream: MediaStream;
    try {
      stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    } catch {
      notices.show(t("attach.noMicrophone"));
      return;
    }
    this.recording = true;
    this.#keep = true;
    const pieces: Blob[] = [];
    const recorder = new MediaRecorder(stream);
    this.#recorder = recorder;
    recorder.ondataavailable = ({ data }) => pieces.push(data);
    const stopMeter = this.#meter(stream);
    recorder.onstop = () => {
      stopMeter();
      for (const track of stream.getTracks()) track.stop();
      this.recording = false;
      const type = recorder.mimeType.replace(/^video\//u, "audio/") || "audio/webm";
      if (this.#keep) void draft.add([new File(pieces, t("attach.recording"), { type })]);
    };
    recorder.start();
  }

  /** Ends it; what was said is attached, or not. */
  stop(keep = true): void {
    this.#keep = keep;
    if (this.#recorder?.state === "recording") this.#recorder.stop();
  }

  #meter(stream: MediaStream): () => void {
    const context = new AudioContext();
    const analyser = context.createAnalyser();
    context.createMediaStreamSource(stream).connect(analyser);
    const samples = new Float32Array(analyser.fftSize);
    const began = performance.now();
    const timer = setInterval(() => {
      analyser.getFloatTimeDomainData(samples);
      const power = samples.reduce((sum, x) => sum + x * x, 0) / samples.length;
      // Decibels from silence to full scale.
      this.level = Math.min(1, Math.max(0, 1 + Math.log10(Math.max(power, 1e-9)) / 5));
      this.seconds = (performance.now() - began) / 1000;
      if (performance.now() - began > LONGEST_MS) this.stop();
    }, 80);
    return () => {
      clearInterval(timer);
      [this.level, this.seconds] = [0, 0];
      void context.close();
    };
  }
}

export const recorder = new Recorder();
