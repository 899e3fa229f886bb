// Taking the GPU from an engine.

/** The engine's worker, with a way to take its devices from it. */
export const WORKER = `
import "/rullama/worker.js";
const { requestDevice } = GPUAdapter.prototype;
const devices = [];
GPUAdapter.prototype.requestDevice = async function (descriptor) {
  const device = await requestDevice.call(this, descriptor);
  devices.push(device);
  return device;
};
new BroadcastChannel("devices").onmessage = () => devices.forEach((device) => device.destroy());
`;
