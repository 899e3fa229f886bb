//! Instrumented kernels, for tests: each is rewritten before it is compiled, and counts its faults in an additional buffer.

use std::{cell::RefCell, fmt, sync::Arc};

use super::{Buffer, Gpu, readback};
use crate::error::EngineError;

/// Rewrites a kernel, given its WGSL, the values of its `override` constants and the binding of the counters. The result has no
/// `override` left.
type Rewrite = dyn Fn(&str, &[(&'static str, f64)], u32) -> String + Send + Sync;

/// Wraps a [`Rewrite`].
#[derive(Clone)]
pub(super) struct Rewriter(Arc<Rewrite>);

impl Rewriter {
    pub(super) fn rewrite(
        &self,
        text: &str,
        constants: &[(&'static str, f64)],
        binding: usize,
    ) -> String {
        (self.0)(text, constants, u32::try_from(binding).expect("few bindings"))
    }
}

impl fmt::Debug for Rewriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rewriter")
    }
}

/// The rewriter of a device and its counters, if it is instrumented.
#[derive(Debug, Default)]
pub(super) struct Instrument(RefCell<Option<(Rewriter, Buffer)>>);

impl Instrument {
    pub(super) fn rewriter(&self) -> Option<Rewriter> {
        self.0.borrow().as_ref().map(|(rewriter, _)| rewriter.clone())
    }

    /// The counter buffer of all rewritten kernels.
    pub(super) fn counters(&self) -> Option<Buffer> {
        self.0.borrow().as_ref().map(|(_, counters)| counters.clone())
    }
}

impl Gpu {
    /// Number of counters, bound as `array<atomic<u32>, COUNTERS>`.
    pub const COUNTERS: usize = 4;

    /// Rewrites all kernels from now on: `rewrite` gets a kernel's WGSL, the values of its `override` constants and the binding of the
    /// [`Self::COUNTERS`] counters. For tests.
    ///
    /// # Errors
    /// If there is no memory for the counters.
    ///
    /// # Panics
    /// If kernels were compiled before.
    pub async fn instrument(
        &self,
        rewrite: impl Fn(&str, &[(&'static str, f64)], u32) -> String + Send + Sync + 'static,
    ) -> Result<(), EngineError> {
        assert!(self.pipelines.labels().is_empty(), "kernels were compiled before");
        let usage = wgpu::BufferUsages::STORAGE
            | wgpu::BufferUsages::COPY_SRC
            | wgpu::BufferUsages::COPY_DST;
        let counters = self.buffer("counters", 4 * Self::COUNTERS as u64, usage).await?;
        let known = (Rewriter(Arc::new(rewrite)), counters);
        *self.pipelines.instrument.0.borrow_mut() = Some(known);
        Ok(())
    }

    /// The counts of the rewritten kernels, after everything that was queued.
    ///
    /// # Errors
    /// If the device is lost.
    pub async fn counted(&self) -> Result<[u32; Self::COUNTERS], EngineError> {
        let mut counts = [0; Self::COUNTERS];
        if let Some(counters) = self.pipelines.instrument.counters() {
            let bytes = readback::read(self, &counters, 4 * Self::COUNTERS as u64).await?;
            bytemuck::cast_slice_mut(&mut counts).copy_from_slice(&bytes);
        }
        Ok(counts)
    }
}
