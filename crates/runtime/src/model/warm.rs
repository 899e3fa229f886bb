//! Kernels compiled while the weights are being read.

use rullama_engine::executor::Device;
use rullama_models::gemma4::Pass;

use super::passes::UsualPasses;

impl UsualPasses<'_> {
    /// Starts compiling the kernels of these passes. A software GPU compiles for seconds, and most models loaded onto one are small:
    /// there, kernels are compiled when they are used.
    pub(super) fn warm(&self, device: &Device, passes: &[Pass]) {
        let Device::Gpu(gpu) = device else { return };
        if gpu.is_software() {
            return;
        }
        for pass in passes {
            // Errors come again when a plan needs the kernel.
            self.segments(pass).iter().for_each(|segment| drop(gpu.warm(&segment.graph)));
        }
    }
}
