//! The weights of a model on either executor.

use bytes::Bytes;

use super::Device;
use crate::{
    cpu,
    error::EngineError,
    gpu,
    graph::{Element, Origin, Type},
};

/// Weights by name. On the CPU they are the file's bytes; to a GPU they are copied piece by piece.
#[derive(Debug)]
pub enum Weights {
    /// Bytes of the mapped file, or of memory.
    Cpu(cpu::Weights),
    /// Buffers of the device.
    Gpu(gpu::Weights),
}

impl Weights {
    /// An empty set of weights.
    pub fn new(device: &Device) -> Self {
        match device {
            Device::Cpu => Self::Cpu(cpu::Weights::default()),
            Device::Gpu(gpu) => Self::Gpu(gpu::Weights::new(gpu)),
        }
    }

    /// Allocates a weight of a graph; its rows follow with [`Self::write`], tensor by tensor, in order.
    ///
    /// # Errors
    /// If the origin is not a weight, the format has no kernels, or memory runs out.
    pub async fn reserve(&mut self, origin: &Origin, ty: &Type) -> Result<(), EngineError> {
        let (Some(name), Element::Weight(dtype)) = (origin.weight_name(), ty.element) else {
            return Err(EngineError::WrongWeight {
                name: format!("{origin:?}"),
                wanted: "a weight".into(),
                found: ty.to_string(),
            });
        };
        match self {
            Self::Gpu(weights) => weights.reserve(&name, dtype, &ty.shape).await,
            Self::Cpu(weights) => weights.reserve(origin, dtype, ty),
        }
    }

    /// Writes whole rows of a tensor in the file's format, from row `first` of the weight on, which is a multiple of four.
    ///
    /// # Errors
    /// If the weight was not reserved, or the bytes are not whole rows inside it, or the piece starts at another row.
    pub fn write(
        &mut self,
        origin: &Origin,
        tensor: &str,
        first: usize,
        bytes: Bytes,
    ) -> Result<(), EngineError> {
        match self {
            Self::Gpu(weights) => {
                let missing = || EngineError::MissingWeight { name: tensor.into() };
                weights.write(&origin.weight_name().ok_or_else(missing)?, first, &bytes)
            }
            Self::Cpu(weights) => weights.write(tensor, bytes),
        }
    }

    /// The union with other weights of the same device, without copying any.
    ///
    /// # Panics
    /// If they are on different executors.
    #[must_use]
    pub fn with(&self, others: &Self) -> Self {
        match (self, others) {
            (Self::Cpu(known), Self::Cpu(more)) => Self::Cpu(known.with(more)),
            (Self::Gpu(known), Self::Gpu(more)) => Self::Gpu(known.with(more)),
            _ => panic!("weights are on different executors"),
        }
    }

    /// Waits until the device has received the writes.
    ///
    /// # Errors
    /// If the device is lost or does not respond.
    pub async fn flush(&self) -> Result<(), EngineError> {
        match self {
            Self::Cpu(_) => Ok(()),
            Self::Gpu(weights) => weights.flush().await,
        }
    }

    /// A fence after everything that was queued; `None` on the CPU, which has no queue.
    ///
    /// # Errors
    /// If the device is lost.
    pub fn fence(&self) -> Result<Option<gpu::Fence>, EngineError> {
        match self {
            Self::Cpu(_) => Ok(None),
            Self::Gpu(weights) => weights.fence().map(Some),
        }
    }

    /// Maximum bytes for one [`Self::write`]: all of a mapped file, a piece for a GPU and in pages.
    pub fn piece_bytes(&self) -> u64 {
        match self {
            Self::Cpu(_) => cpu::Weights::piece_bytes(),
            Self::Gpu(_) => 16 << 20,
        }
    }

    /// Bytes on the host, of a mapped file or of memory.
    pub fn host_bytes(&self) -> u64 {
        match self {
            Self::Cpu(weights) => weights.bytes(),
            Self::Gpu(_) => 0,
        }
    }

    /// Bytes on the GPU.
    pub fn gpu_bytes(&self) -> u64 {
        match self {
            Self::Cpu(_) => 0,
            Self::Gpu(weights) => weights.bytes(),
        }
    }
}
