//! The up-projection (B) of a linear layer that combines split-KV partials: attention also multiplies its partials by the down-projection (A);
//! the linear layer then adds `B z` to its output, so that the reader of its result need not.

use rullama_gguf::DType;

use crate::{
    gpu::{BufferRef, Dispatch, GpuCall, LoraPartials, SplitKvPartials},
    ops::matmul::op::{FusedLinear, RowSelect},
};

/// Bindings of an attention kernel that writes its caches and computes LoRA partials.
const ATTENTION_BINDINGS: u32 = 10;

/// The up-projection.
pub(super) struct UpProjection {
    dtype: DType,
    /// vec4s of a row of the transposed `B` in memory.
    stride: usize,
    /// Its input index in the result's reader.
    input: usize,
    partials: SplitKvPartials,
    pub(super) lora: LoraPartials,
}

impl UpProjection {
    /// `None` if the reader of the result adds `B z`.
    pub(super) fn new(call: &GpuCall<'_>, partials: Option<SplitKvPartials>) -> Option<Self> {
        let (partials, (reader, input)) = (partials?, branch_lora(call)?);
        let b = reader.slabs(input);
        let (dtype, stride, lora) = (b.dtype, b.row_blocks / 4, partials.lora?);
        Some(Self { dtype, stride, input, partials, lora })
    }

    /// Bytes of workgroup memory.
    pub(super) fn shared_bytes(&self) -> usize {
        self.partials.heads * self.lora.rows * 4
    }

    /// Adds its parts and binding.
    pub(super) fn composed(&self, dispatch: Dispatch) -> Dispatch {
        let b = match self.dtype {
            DType::F16 => part!("lora_b", "f16"),
            _ => part!("lora_b", "f32"),
        };
        dispatch
            .part(part!("lora_up", "partials"))
            .part(b)
            .constant("UP_RANK", self.lora.rows as u32)
            .constant("UP_PARTIALS", (self.partials.heads * self.lora.rows / 4) as u32)
            .constant("UP_PARTIALS_AT", self.partials.lora_at() as u32)
            .constant("UP_STRIDE", self.stride as u32)
            .read_as("up_b", BufferRef::ReaderInput(self.input))
    }
}

/// The operation that reads a linear layer's result as its branch, if it adds a LoRA up-projection, and the input index of the transposed `B`.
fn branch_lora<'a>(call: &GpuCall<'a>) -> Option<(GpuCall<'a>, usize)> {
    let reader = call.only_branch_reader(0)?;
    let input = reader.branch_lora()?;
    Some((reader, input))
}

/// The down-projection that attention applies to its partials, if any.
pub(in crate::ops::matmul) fn partials(
    op: &FusedLinear,
    call: &GpuCall<'_>,
    partials: SplitKvPartials,
) -> Option<LoraPartials> {
    let plain = op.is_plain() && op.rows == RowSelect::All;
    let bindings = call.facts.storage_buffers >= ATTENTION_BINDINGS;
    if !plain || !op.lora.has_down_rows() || partials.tokens > 1 || !bindings {
        return None;
    }
    let (reader, input) = branch_lora(call)?;
    let (b, rows) = (reader.slabs(input), reader.input(input).shape.rows());
    let first = call.inputs() - op.lora.inputs();
    let a = call.slabs(first);
    let known = |dtype| matches!(dtype, DType::F16 | DType::F32);
    let fits = a.rows.len() == 1 && b.rows.len() == 1 && known(a.dtype) && known(b.dtype);
    let in_range = rows.is_multiple_of(4) && rows <= call.input(first).shape.rows();
    let lora = LoraPartials { input: first, dtype: a.dtype, rows, stride: a.row_blocks / 4 };
    (fits && in_range).then_some(lora)
}
