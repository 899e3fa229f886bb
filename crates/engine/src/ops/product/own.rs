//! A pair of a product's own after attention, which meets the first factor where it leaves its heads in parts: then the product adds `B z`
//! to its rows, and those that take its result as a branch need not.

use rullama_gguf::DType;

use super::{Begin, End, Product, Taken, low::Low};
use crate::gpu::{Dispatch, GpuCall, Met, Place, SplitKvPartials};

/// Buffers of an attention that writes its caches and meets a factor.
const BUFFERS: u32 = 10;

/// The second factor.
pub(super) struct Own {
    dtype: DType,
    /// Quads of a row of `B`, turned, in memory.
    stride: usize,
    /// Which input of what reads the result it is.
    input: usize,
    parts: SplitKvPartials,
    pub(super) met: Met,
}

impl Own {
    /// `None` if what takes the result adds `B z`.
    pub(super) fn new(call: &GpuCall<'_>, parts: Option<SplitKvPartials>) -> Option<Self> {
        let (parts, (reader, input)) = (parts?, second_factor(call)?);
        let b = reader.slabs(input);
        let (dtype, stride, met) = (b.dtype, b.row_blocks / 4, parts.met?);
        Some(Self { dtype, stride, input, parts, met })
    }

    /// Bytes of workgroup memory.
    pub(super) fn shared_bytes(&self) -> usize {
        self.parts.heads * self.met.rows * 4
    }

    /// With its parts and binding.
    pub(super) fn composed(&self, dispatch: Dispatch) -> Dispatch {
        let spot = match dispatch.bindings.len() {
            4 => part!("own_spot", "6"),
            others => {
                assert_eq!(others, 6, "bindings in front of a second factor");
                part!("own_spot", "8")
            }
        };
        let b = match self.dtype {
            DType::F16 => part!("own_b", "f16"),
            _ => part!("own_b", "f32"),
        };
        dispatch
            .part(part!("low_own", "met"))
            .part(b)
            .part(spot)
            .constant("OWN_RANK", self.met.rows as u32)
            .constant("OWN_PARTS", (self.parts.heads * self.met.rows / 4) as u32)
            .constant("OWN_AT", self.parts.met_at() as u32)
            .constant("OWN_STRIDE", self.stride as u32)
            .read(Place::OfReader(self.input))
    }
}

/// What reads the result of a product as a branch, if that adds to it, and which of its inputs is the second factor, turned.
fn second_factor<'a>(call: &GpuCall<'a>) -> Option<(GpuCall<'a>, usize)> {
    let reader = call.only_branch_reader(0)?;
    let input = reader.second_factor()?;
    Some((reader, input))
}

/// The first factor that attention shall meet where it leaves such parts to a product.
pub(super) fn met(op: &Product, call: &GpuCall<'_>, parts: SplitKvPartials) -> Option<Met> {
    let plain = op.begin == Begin::Plain && op.taken == Taken::All && op.end == End::Plain;
    let beside = matches!(op.low, Low::Beside | Low::BesideBoth);
    if !plain || !beside || parts.tokens > 1 || call.facts.storage_buffers < BUFFERS {
        return None;
    }
    let (reader, input) = second_factor(call)?;
    let (b, rows) = (reader.slabs(input), reader.input(input).shape.rows());
    let first = call.inputs() - op.low.inputs();
    let a = call.slabs(first);
    let known = |dtype| matches!(dtype, DType::F16 | DType::F32);
    let whole = a.rows.len() == 1 && b.rows.len() == 1 && known(a.dtype) && known(b.dtype);
    let there = rows.is_multiple_of(4) && rows <= call.input(first).shape.rows();
    let met = Met { input: first, dtype: a.dtype, rows, stride: a.row_blocks / 4 };
    (whole && there).then_some(met)
}
