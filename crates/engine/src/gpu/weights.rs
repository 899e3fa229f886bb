//! Weights on the device: written in pieces of whole rows and split into planes, never whole in host memory.

use std::rc::Rc;

use rullama_gguf::DType;
use rustc_hash::FxHashMap;

use super::{
    Buffer, Gpu,
    readback::Fence,
    slabs::{ROW_STEP, Slabs},
};
use crate::{error::EngineError, graph::Shape, threads::in_parallel};

/// Bytes of a piece that one thread splits into planes and copies: reading pages of the file, splitting and copying take longer than the
/// transfer to the device.
const SHARE_BYTES: usize = 1 << 20;

/// The weights of a model on one device.
#[derive(Debug)]
pub struct Weights {
    gpu: Gpu,
    known: FxHashMap<String, Rc<Resident>>,
}

/// A weight's slabs and their buffers.
#[derive(Debug, Clone)]
pub(crate) struct Resident {
    pub(crate) slabs: Slabs,
    pub(crate) buffers: Vec<Buffer>,
}

impl Weights {
    /// An empty set of weights.
    pub fn new(gpu: &Gpu) -> Self {
        Self { gpu: gpu.clone(), known: FxHashMap::default() }
    }

    /// The device they are on.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Allocates a weight under its name in the graph ([`Origin::weight_name`](crate::graph::Origin::weight_name)); its rows follow with
    /// [`Self::write`], those of a stack tensor by tensor.
    ///
    /// # Errors
    /// If the format has no kernels, or memory runs out.
    pub async fn reserve(
        &mut self,
        name: &str,
        dtype: DType,
        shape: &Shape,
    ) -> Result<(), EngineError> {
        if !super::reads(dtype) {
            return Err(EngineError::UnsupportedFormat { name: name.into(), format: dtype.name() });
        }
        let slabs = Slabs::new(dtype, shape, self.gpu.facts());
        let mut buffers = Vec::new();
        for slab in 0..slabs.rows.len() {
            let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST;
            buffers.push(self.gpu.buffer(name, slabs.bytes(slab).max(16) as u64, usage).await?);
        }
        self.known.insert(name.into(), Rc::new(Resident { slabs, buffers }));
        Ok(())
    }

    /// Writes whole rows from row `first` on, in the file's format. Pieces start at multiples of [`ROW_STEP`] rows.
    ///
    /// # Errors
    /// If the weight was not reserved, or the bytes are not whole rows inside it, or the piece starts at another row.
    pub fn write(&self, name: &str, first: usize, bytes: &[u8]) -> Result<(), EngineError> {
        let missing = || EngineError::MissingWeight { name: name.into() };
        let Resident { slabs, buffers } = &**self.known.get(name).ok_or_else(missing)?;
        let row_bytes = slabs.file_blocks * slabs.dtype.block_bytes();
        let rows = bytes.len() / row_bytes;
        let all = slabs.rows.last().map_or(0, |range| range.end);
        let ends_aligned =
            first + rows == all || (first + rows < all && rows.is_multiple_of(ROW_STEP));
        if rows * row_bytes != bytes.len() || !first.is_multiple_of(ROW_STEP) || !ends_aligned {
            return Err(EngineError::NotWholeRows { name: name.into(), first, bytes: bytes.len() });
        }
        for (slab, range) in slabs.rows.iter().enumerate() {
            let (start, end) = (first.max(range.start), (first + rows).min(range.end));
            if start >= end {
                continue;
            }
            let piece = &bytes[(start - first) * row_bytes..(end - first) * row_bytes];
            let (queue, buffer): (_, &wgpu::Buffer) = (&self.gpu.queue, &buffers[slab]);
            let share_rows = (SHARE_BYTES / row_bytes).next_multiple_of(ROW_STEP).max(ROW_STEP);
            let shares = piece.chunks(share_rows * row_bytes).enumerate();
            in_parallel(shares, |(i, share)| {
                let first = start - range.start + i * share_rows;
                for (offset, plane) in slabs.split(slab, first, share) {
                    copy(queue, buffer, offset, plane);
                }
            });
        }
        Ok(())
    }

    /// Waits until the device has received the writes, so that copies do not accumulate on the host.
    ///
    /// # Errors
    /// If the device is lost or does not respond.
    pub async fn flush(&self) -> Result<(), EngineError> {
        self.fence()?.wait().await
    }

    /// A fence after everything that was queued.
    ///
    /// # Errors
    /// If the device is lost.
    pub fn fence(&self) -> Result<Fence, EngineError> {
        Fence::new(&self.gpu)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Resident> {
        self.known.get(name).map(|resident| &**resident)
    }

    /// The union with other weights, without copying any.
    #[must_use]
    pub fn with(&self, others: &Self) -> Self {
        let all = self.known.iter().chain(&others.known);
        let known = all.map(|(name, resident)| (name.clone(), resident.clone())).collect();
        Self { gpu: self.gpu.clone(), known }
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> u64 {
        self.known.values().flat_map(|resident| &resident.buffers).map(Buffer::bytes).sum()
    }
}

/// Queues a copy, padded to WebGPU's multiple of four bytes.
fn copy(queue: &wgpu::Queue, buffer: &wgpu::Buffer, offset: usize, mut plane: Vec<u8>) {
    plane.resize(plane.len().next_multiple_of(4), 0);
    queue.write_buffer(buffer, offset as u64, &plane);
}
