//! The LoRA down-projection (A) in a separate dispatch, fused with a prologue. The kernel is bound by latency, so it has one pass over the
//! columns and one reduction.

use bytemuck::NoUninit;
use rullama_gguf::DType;

use super::{BranchLora, weight_part};
use crate::{
    cpu::CpuCall,
    gpu::{BufferRef, DeviceFacts, Dispatch, GpuCall, Kernel},
    graph::{Graph, Op, Type, Value},
    ops::{fused, matmul::op::Prologue, parts},
};

static DOWN: Kernel = Kernel { name: "matmul/lora_down", source: include_str!("down.wgsl") };

/// Maximum lanes of a workgroup.
const MAX_LANES: usize = 1024;
/// Lanes if the columns cannot be divided evenly.
const SOME_LANES: usize = 256;
/// Maximum vec4s per lane, if all lanes have equally many.
const MAX_TURNS: usize = 8;
/// Maximum vec4s that a lane prefetches at once.
const MAX_PREFETCHED: usize = 3;

/// Inputs: those of the prologue, and `A` `[r, k]`. Results: `h1` if the prologue computes it, `x` if it is stored, then `A x`. Models do not
/// use it directly: fused linear layers expand to it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DownProjection {
    /// Computes x; by input index.
    pub(super) prologue: Prologue<usize>,
    /// Whether x is a result.
    pub(super) stores_x: bool,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    width: u32,
    stride: u32,
    rows: u32,
    eps: f32,
    scaled: u32,
    branch_stride: u32,
}

impl DownProjection {
    fn unfused(&self, graph: &mut Graph, inputs: &[Value]) -> Vec<Value> {
        let (h1, x) = self.prologue.with(inputs).rows(graph);
        let z = graph.linear(x, inputs[self.prologue.inputs()]);
        h1.into_iter().chain(self.stores_x.then_some(x)).chain([z]).collect()
    }

    /// `None` if no kernel supports it.
    fn dispatch(&self, call: &GpuCall<'_>) -> Option<Dispatch> {
        let at = self.prologue.inputs();
        let (a, shape) = (call.slabs(at), &call.input(0).shape);
        let (width, rows) = (shape.width(), call.input(at).shape.rows());
        let known = matches!(a.dtype, DType::F16 | DType::F32);
        if !known || shape.rows() > 1 || a.rows.len() > 1 || !width.is_multiple_of(4) {
            return None;
        }
        let (eps, scaled) = self.prologue.eps_and_scaled();
        let word = |n: usize| u32::try_from(n).expect("sizes of one weight fit 32 bits");
        let branch = BranchLora::new(&self.prologue, call)?;
        let tiling = DownTiling::new(width / 4, call.facts);
        let dispatch = Dispatch::new(&DOWN)
            .part(parts::team(call.facts))
            .part(weight_part(a.dtype))
            .constant("WG", tiling.lanes as u32)
            .constant("LANES", tiling.shuffled as u32)
            .constant("SPLIT", (tiling.lanes / tiling.shuffled) as u32)
            .constant("PREFETCHED", tiling.prefetched as u32)
            .params(&Params {
                width: word(width),
                stride: word(a.row_blocks / 4),
                rows: word(rows),
                eps,
                scaled: scaled.into(),
                branch_stride: word(branch.as_ref().map_or(0, |branch| branch.stride)),
            })
            .grid_over(rows.div_ceil(2))
            .read(BufferRef::Slab(at, 0))
            .read(BufferRef::Input(0));
        let dispatch = self.prologue(dispatch);
        let dispatch = match branch {
            Some(branch) => branch.composed(dispatch, Some(a.dtype))?,
            None => BranchLora::none(&self.prologue, dispatch),
        };
        (dispatch.bindings.len() <= call.facts.storage_buffers as usize).then_some(dispatch)
    }

    /// Adds the parts of the prologue and its bindings, after those that all down-projections have.
    fn prologue(&self, dispatch: Dispatch) -> Dispatch {
        let z = |h1: usize| BufferRef::Output(h1 + usize::from(self.stores_x));
        match &self.prologue {
            Prologue::Rows(_) => dispatch.part(part!("down_prologue", "plain")).write(z(0)),
            Prologue::Norm { weight, .. } => self.stored_x(
                0,
                dispatch
                    .part(part!("down_prologue", "norm"))
                    .write(z(0))
                    .read(BufferRef::Input(*weight)),
            ),
            Prologue::ResidualAdd { branch, next, .. } => {
                let dispatch = dispatch
                    .part(part!("down_prologue", "residual_add"))
                    .constant("POST_NORM", u32::from(branch.post_norm))
                    .write(z(1))
                    .read(BufferRef::Input(branch.branch))
                    .read(BufferRef::Input(branch.weight))
                    // Without a scale the weight is bound in its place and not read.
                    .read(BufferRef::Input(branch.scale.unwrap_or(branch.weight)))
                    .write(BufferRef::Output(0));
                let dispatch = match next {
                    Some(next) => {
                        dispatch.part(part!("down_next_norm", "norm")).read(BufferRef::Input(*next))
                    }
                    None => dispatch.part(part!("down_next_norm", "none")),
                };
                self.stored_x(1, dispatch)
            }
        }
    }

    /// Adds the part that stores x as result `output`, or not.
    fn stored_x(&self, output: usize, dispatch: Dispatch) -> Dispatch {
        match self.stores_x {
            true => dispatch
                .part(part!("write_x", "present"))
                .write_as("stored_x", BufferRef::Output(output)),
            false => dispatch.part(part!("write_x", "none")),
        }
    }
}

/// The division of the columns among lanes.
#[derive(Debug, PartialEq, Eq)]
struct DownTiling {
    /// Lanes of a workgroup.
    lanes: usize,
    /// Lanes that sum by shuffles.
    shuffled: usize,
    /// vec4s that a lane prefetches at once.
    prefetched: usize,
}

impl DownTiling {
    fn new(vec4s: usize, facts: &DeviceFacts) -> Self {
        let shuffled = facts.subgroups.map_or(32, |(least, _)| least.min(32)) as usize;
        // Partial sums take 16 bytes of workgroup memory per lane.
        let most =
            MAX_LANES.min(facts.invocations as usize).min(facts.workgroup_bytes as usize / 16);
        let even = |turns: &usize| {
            vec4s.is_multiple_of(turns * shuffled) && (1..=most).contains(&(vec4s / turns))
        };
        match (1..=MAX_TURNS).find(even) {
            Some(turns) => {
                let prefetched = if turns <= MAX_PREFETCHED { turns } else { 1 };
                Self { lanes: vec4s / turns, shuffled, prefetched }
            }
            None => Self { lanes: SOME_LANES.min(most), shuffled, prefetched: 1 },
        }
    }
}

impl Op for DownProjection {
    fn name(&self) -> &'static str {
        "lora_down"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        fused::infer(inputs, &|graph, inputs| self.unfused(graph, inputs))
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        fused::cpu(call, &|graph, inputs| self.unfused(graph, inputs));
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        match self.dispatch(call) {
            Some(dispatch) => vec![dispatch],
            None => fused::gpu(call, &|graph, inputs| self.unfused(graph, inputs)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DeviceFacts, DownTiling};

    #[test]
    fn columns_are_divided_evenly_if_possible() {
        let floor = DeviceFacts::floor();
        let large = DeviceFacts {
            invocations: 1024,
            workgroup_bytes: 48 << 10,
            subgroups: Some((32, 32)),
            ..DeviceFacts::floor()
        };
        for (width, facts, (lanes, prefetched)) in [
            // E2B: the stream, heads, both widths of feed-forward.
            (1536, &large, (384, 1)),
            (2048, &large, (512, 1)),
            (6144, &large, (768, 2)),
            (12_288, &large, (1024, 3)),
            (1536, &floor, (192, 2)),
            (12_288, &floor, (256, 1)),
            (21_504, &large, (896, 1)),
            (64, &large, (256, 1)),
        ] {
            let tiling = DownTiling::new(width / 4, facts);
            assert_eq!((tiling.lanes, tiling.prefetched), (lanes, prefetched), "{width}");
        }
    }
}
