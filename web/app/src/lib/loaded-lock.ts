// Tabs tell each other by a lock that they have a model on the GPU: browsers give it up when a tab goes, however it goes.

const LOADED = "rullama-model-loaded";

/** Says to other tabs that a model is on the GPU, until the function it gives is called. */
export function holdLoaded(): () => void {
  let release = () => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  // Without locks, every tab loads its own.
  void globalThis.navigator?.locks?.request(LOADED, { mode: "shared" }, () => held).catch(() => {});
  return () => release();
}

/** Whether a tab has a model on the GPU. */
export async function someLoaded(): Promise<boolean> {
  const { held = [] } = (await navigator.locks?.query()) ?? {};
  return held.some(({ name }) => name === LOADED);
}
