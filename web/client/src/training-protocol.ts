// What a page and a worker say to each other about adapters and training: a part of the map in `protocol.ts`.

import type {
  AdapterFile,
  AdapterInfo,
  StoredAdapter,
  TrainingOptions,
  TrainingReport,
  TrainingResult,
} from "./training-types.js";

/** Where an adapter's bytes are. */
export type PlainAdapter = { weights: Blob; config?: string } | { stored: string };

/** What happens in a training. */
export type TrainingNote =
  | { type: "begun"; step: number; steps: number; losses: number[]; evaluations: { step: number; loss: number }[] }
  | { type: "step"; step: number; loss: number; learningRate: number; tokensPerSecond: number; eta: number }
  | { type: "evaluated"; step: number; loss: number }
  | { type: "saved"; step: number }
  | { type: "paused" }
  | { type: "resumed" };

export interface TrainingRequests {
  addAdapter: {
    params: { model: number; id: string; name?: string; adapter: PlainAdapter; keep: boolean };
    result: AdapterInfo;
    event: never;
  };
  listAdapters: { params: { model: number }; result: AdapterInfo[]; event: never };
  removeAdapter: { params: { model: number; id: string }; result: void; event: never };
  exportAdapter: {
    params: { model: number; id: string; format: "peft" | "gguf" };
    result: AdapterFile[];
    event: never;
  };
  storedAdapters: { params: void; result: StoredAdapter[]; event: never };
  renameAdapter: { params: { id: string; name: string }; result: void; event: never };
  deleteAdapter: { params: { id: string }; result: void; event: never };
  inspectTraining: {
    params: { model: number; data: string; options: TrainingOptions };
    result: TrainingReport;
    event: never;
  };
  /** Settles when the training is done; `begin` is missing where a stored one goes on. */
  train: {
    params: { model: number; id: string; begin?: { data: string; options: TrainingOptions } };
    result: TrainingResult;
    event: TrainingNote;
  };
  /** Settles when it is so: a pause, once its checkpoint is written. */
  steerTraining: {
    params: { model: number; id: string; command: "pause" | "resume" | "checkpoint" };
    result: void;
    event: never;
  };
}
