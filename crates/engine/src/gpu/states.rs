//! State buffers: KV caches and the last token.

use std::collections::HashMap;

use super::{Buffer, Gpu, memory::value_bytes};
use crate::{
    error::EngineError,
    graph::{Element, Type},
    precision::Q8_GROUP,
};

/// State buffers by name; plans of one session share them.
pub type States = HashMap<String, Buffer>;

/// How buffers of values are used: by kernels, for reading back and for copies.
pub(super) const STORAGE: wgpu::BufferUsages = wgpu::BufferUsages::STORAGE
    .union(wgpu::BufferUsages::COPY_SRC)
    .union(wgpu::BufferUsages::COPY_DST);

/// Adjacent rows of a state, and where a copy of them goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowSpan {
    /// The first row.
    pub from: usize,
    /// The first row of the copy.
    pub to: usize,
    /// How many rows.
    pub count: usize,
}

/// Creates a state of this name if there is none.
pub(crate) async fn create_state(
    gpu: &Gpu,
    states: &mut States,
    name: &str,
    ty: &Type,
) -> Result<(), EngineError> {
    if !states.contains_key(name) {
        check_binding(gpu, name, ty)?;
        states.insert(name.into(), gpu.buffer(name, value_bytes(ty), STORAGE).await?);
    }
    Ok(())
}

/// States are bound whole: refuses a cache larger than a binding before anything is allocated for it.
fn check_binding(gpu: &Gpu, name: &str, ty: &Type) -> Result<(), EngineError> {
    // The device's own limit, whatever feature level it emulates.
    let limit = gpu.device.limits().max_storage_buffer_binding_size;
    let bytes = value_bytes(ty);
    if bytes <= limit {
        return Ok(());
    }
    let slots = ty.shape.dims().first().copied().unwrap_or(1) as u64;
    let fits = limit / bytes.div_ceil(slots.max(1));
    Err(EngineError::CacheTooLarge { name: name.into(), bytes, limit, fits })
}

/// Where the rows of a cache are in its buffer: first byte and bytes per row of the elements, then of the scales.
fn planes(ty: &Type) -> Vec<(usize, usize)> {
    let row = ty.shape.len() / ty.shape.dims()[0].max(1);
    match ty.element {
        Element::F32 | Element::U32 => vec![(0, row * 4)],
        Element::F16 => vec![(0, row * 2)],
        Element::Q8 => vec![(0, row), (ty.shape.len(), row / Q8_GROUP * 4)],
        Element::Weight(_) => vec![],
    }
}

impl Gpu {
    /// Queues copies of rows between states; each has a name, its type here and there, and its rows.
    pub(crate) fn copy_rows<'a>(
        &self,
        from: &States,
        to: &States,
        copies: impl IntoIterator<Item = (&'a str, &'a Type, &'a Type, &'a [RowSpan])>,
    ) {
        let descriptor = wgpu::CommandEncoderDescriptor { label: Some("copied rows") };
        let mut encoder = self.device.create_command_encoder(&descriptor);
        for (name, from_type, to_type, spans) in copies {
            let (Some(source), Some(target)) = (from.get(name), to.get(name)) else { continue };
            for ((from_plane, row), (to_plane, _)) in
                planes(from_type).into_iter().zip(planes(to_type))
            {
                for span in spans {
                    let at = |plane: usize, first: usize| (plane + first * row) as u64;
                    let bytes = (span.count * row) as u64;
                    let (first, goal) = (at(from_plane, span.from), at(to_plane, span.to));
                    encoder.copy_buffer_to_buffer(source, first, target, goal, bytes);
                }
            }
        }
        self.submit([encoder.finish()]);
    }
}
