// The one engine of this tab, and what it says of the GPU.

import { openEngine, type DeviceReport, type EngineApi } from "rullama";

let opened: EngineApi | undefined;

/** Opened on first use: it starts a worker. */
export function engine(): EngineApi {
  return (opened ??= openEngine());
}

class Device {
  report = $state<DeviceReport>();
  error = $state<unknown>();

  async look(): Promise<void> {
    try {
      this.report = await engine().device();
      this.error = undefined;
    } catch (error) {
      this.error = error;
    }
  }

  get missing(): boolean {
    return this.report?.webgpu === false;
  }
}

export const device = new Device();
