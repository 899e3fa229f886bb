//! The weights of a model where its lists run.

use std::collections::HashMap;

use bytes::Bytes;

use super::Device;
use crate::{
    cpu,
    error::EngineError,
    gpu,
    graph::{Element, Type},
};

/// Weights by name. On the CPU they stay as they lie in the file; on a GPU they are copied piece by piece.
#[derive(Debug)]
pub enum Weights {
    /// Bytes of the file, or of memory.
    Cpu(HashMap<String, cpu::Weight>),
    /// Buffers of the device.
    Gpu(gpu::Weights),
}

impl Weights {
    /// No weights yet.
    pub fn new(device: &Device) -> Self {
        match device {
            Device::Cpu => Self::Cpu(HashMap::new()),
            Device::Gpu(gpu) => Self::Gpu(gpu::Weights::new(gpu)),
        }
    }

    /// Makes room for a weight; its rows follow with [`Self::write`], in order.
    ///
    /// # Errors
    /// If its type is no weight's, the format has no kernels, or there is no memory.
    pub async fn reserve(&mut self, name: &str, ty: &Type) -> Result<(), EngineError> {
        let Element::Weight(dtype) = ty.element else {
            return Err(EngineError::WrongWeight {
                name: name.into(),
                wanted: "a weight".into(),
                found: ty.to_string(),
            });
        };
        match self {
            Self::Cpu(known) => {
                let weight = cpu::Weight { dtype, shape: ty.shape.clone(), bytes: Bytes::new() };
                known.insert(name.into(), weight);
                Ok(())
            }
            Self::Gpu(weights) => weights.reserve(name, dtype, &ty.shape).await,
        }
    }

    /// Writes whole rows from row `first` on, as they lie in the file. Pieces start at multiples of four rows.
    ///
    /// # Errors
    /// If the weight was not reserved, or the bytes are not whole rows inside it, or the piece starts elsewhere.
    pub fn write(&mut self, name: &str, first: usize, bytes: Bytes) -> Result<(), EngineError> {
        match self {
            Self::Gpu(weights) => weights.write(name, first, &bytes),
            Self::Cpu(known) => {
                let missing = || EngineError::MissingWeight { name: name.into() };
                let weight = known.get_mut(name).ok_or_else(missing)?;
                // A mapped file comes in one piece and is not copied.
                if first == 0 {
                    weight.bytes = bytes;
                } else {
                    weight.bytes = [weight.bytes.as_ref(), &bytes].concat().into();
                }
                Ok(())
            }
        }
    }

    /// Waits until a device has taken what was written.
    ///
    /// # Errors
    /// If the device is gone or does not answer.
    pub async fn settle(&self) -> Result<(), EngineError> {
        match self {
            Self::Cpu(_) => Ok(()),
            Self::Gpu(weights) => weights.settle().await,
        }
    }

    /// Most bytes that one [`Self::write`] should take: all of a mapped file, a piece for a GPU.
    pub fn piece_bytes(&self) -> u64 {
        match self {
            Self::Cpu(_) => u64::MAX,
            Self::Gpu(_) => 16 << 20,
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
