//! Compiles kernels while the weights are being read.

use rullama_engine::executor::Device;
use rullama_models::decoder::Pass;

use super::passes::DefaultPasses;

impl DefaultPasses<'_> {
    /// Starts compiling the kernels of these passes. On a software GPU compilation takes seconds of CPU time, so kernels are compiled on
    /// first use there.
    pub(super) fn warm(&self, device: &Device, passes: &[Pass]) {
        let Device::Gpu(gpu) = device else { return };
        if gpu.is_software() {
            return;
        }
        for pass in passes {
            // Errors are reported again when a plan needs the kernel.
            self.segments(pass).iter().for_each(|segment| drop(gpu.warm(&segment.graph)));
        }
    }
}
