// wgpu does not ask browsers for subgroups, so we do it for it: every device that is requested gets them where the adapter has
// them. What it has is told to the engine, which chooses kernels by it.

/** Makes devices come with subgroups; returns the widths `{ min, max }`, zeros where there are none. */
export async function withSubgroups() {
  const adapter = await navigator.gpu?.requestAdapter({ powerPreference: "high-performance" });
  // The kernels take `subgroup_id`, a language extension younger than subgroups themselves.
  const usable = adapter?.features.has("subgroups") && navigator.gpu.wgslLanguageFeatures?.has("subgroup_id");
  if (!usable) return { min: 0, max: 0 };
  const request = GPUAdapter.prototype.requestDevice;
  GPUAdapter.prototype.requestDevice = function (descriptor = {}) {
    const requiredFeatures = new Set(descriptor.requiredFeatures);
    if (this.features.has("subgroups")) requiredFeatures.add("subgroups");
    return request.call(this, { ...descriptor, requiredFeatures: [...requiredFeatures] });
  };
  return { min: adapter.info.subgroupMinSize, max: adapter.info.subgroupMaxSize };
}
