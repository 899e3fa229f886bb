//! The states of a session: KV caches, the last token.

use std::{cell::RefCell, rc::Rc};

use super::Device;
use crate::{
    cpu::{CpuStates, Data, zeros},
    error::EngineError,
    gpu::{Buffer, Gpu, RowSpan, States, create_state},
    graph::{Element, Type},
    precision,
};

/// State memory; all plans of a session share it.
#[derive(Debug)]
pub enum Memory {
    /// On the CPU.
    Cpu(CpuStates),
    /// On a device.
    Gpu(Gpu, States),
}

impl Memory {
    /// Empty memory, in which plans create their states.
    pub fn new(device: &Device) -> Self {
        match device {
            Device::Cpu => Self::Cpu(CpuStates::new()),
            Device::Gpu(gpu) => Self::Gpu(gpu.clone(), States::new()),
        }
    }

    /// A copy that later runs do not change.
    ///
    /// # Errors
    /// If memory runs out.
    pub async fn fork(&self) -> Result<Self, EngineError> {
        Ok(match self {
            Self::Cpu(states) => {
                let copy = |data: &Rc<RefCell<Data>>| Rc::new(RefCell::new(data.borrow().clone()));
                Self::Cpu(states.iter().map(|(name, data)| (name.clone(), copy(data))).collect())
            }
            Self::Gpu(gpu, states) => Self::Gpu(gpu.clone(), gpu.copy_states(states).await?),
        })
    }

    /// The bytes of a state in the device's format, on either executor; `None` if no plan has created it.
    ///
    /// # Errors
    /// If the device is lost or does not respond.
    pub async fn read(&self, name: &str, ty: &Type) -> Result<Option<Vec<u8>>, EngineError> {
        match self {
            Self::Cpu(states) => Ok(states.get(name).map(|data| match &*data.borrow() {
                Data::U32(ids) => bytemuck::cast_slice(ids).to_vec(),
                other => precision::encode(ty.element, other.f32()),
            })),
            Self::Gpu(gpu, states) => match states.get(name) {
                None => Ok(None),
                Some(buffer) => gpu.read_buffer(buffer, state_bytes(ty) as u64).await.map(Some),
            },
        }
    }

    /// Writes the bytes of a state, as [`Self::read`] returned them; ignored if no plan has created the state.
    ///
    /// # Panics
    /// If there are fewer bytes than the type needs.
    pub fn write(&mut self, name: &str, ty: &Type, bytes: &[u8]) {
        match self {
            Self::Cpu(states) => {
                let Some(data) = states.get(name) else { return };
                *data.borrow_mut() = match ty.element {
                    Element::U32 => {
                        Data::U32(bytemuck::pod_collect_to_vec(&bytes[..state_bytes(ty)]))
                    }
                    element => Data::F32(precision::decode(element, bytes, ty.shape.len())),
                };
            }
            Self::Gpu(gpu, states) => {
                if let Some(buffer) = states.get(name) {
                    gpu.write_buffer(buffer, bytes);
                }
            }
        }
    }

    /// Creates a state, unless a plan has done so; plans use it.
    ///
    /// # Errors
    /// If memory runs out.
    pub async fn create(&mut self, name: &str, ty: &Type) -> Result<(), EngineError> {
        match self {
            Self::Gpu(gpu, states) => create_state(gpu, states, name, ty).await,
            Self::Cpu(states) => {
                let data = || Rc::new(RefCell::new(zeros(ty)));
                states.entry(name.into()).or_insert_with(data);
                Ok(())
            }
        }
    }

    /// Copies rows of states to those of the same name in other memory, after everything that was queued. Each has a name, its type here and
    /// there, and its rows; the types differ in the number of rows alone.
    ///
    /// # Panics
    /// If both memories are on different executors, or rows are out of bounds on the CPU.
    pub fn copy_rows<'a>(
        &self,
        to: &Self,
        copies: impl IntoIterator<Item = (&'a str, &'a Type, &'a Type, &'a [RowSpan])>,
    ) {
        match (self, to) {
            (Self::Gpu(gpu, from), Self::Gpu(_, to)) => gpu.copy_rows(from, to, copies),
            (Self::Cpu(from), Self::Cpu(to)) => {
                for (name, ty, _, spans) in copies {
                    let row = ty.shape.len() / ty.shape.dims()[0].max(1);
                    let (Some(from), Some(to)) = (from.get(name), to.get(name)) else { continue };
                    copy_on_cpu(&from.borrow(), &mut to.borrow_mut(), row, spans);
                }
            }
            _ => panic!("both memories are on one executor"),
        }
    }

    /// Bytes on the GPU.
    pub fn gpu_bytes(&self) -> u64 {
        match self {
            Self::Cpu(_) => 0,
            Self::Gpu(_, states) => states.values().map(Buffer::bytes).sum(),
        }
    }
}

fn copy_on_cpu(from: &Data, to: &mut Data, row: usize, spans: &[RowSpan]) {
    let (Data::F32(from), Data::F32(to)) = (from, to) else { return };
    for span in spans {
        let elements = span.from * row..(span.from + span.count) * row;
        to[span.to * row..][..span.count * row].copy_from_slice(&from[elements]);
    }
}

/// Bytes of a state in the device's format, without padding.
pub fn state_bytes(ty: &Type) -> usize {
    let len = ty.shape.len();
    match ty.element {
        Element::F32 | Element::U32 => len.saturating_mul(4),
        Element::F16 => len.saturating_mul(2),
        Element::Q8 => len.saturating_add(len.div_ceil(precision::Q8_GROUP).saturating_mul(4)),
        Element::Weight(_) => 0,
    }
}
