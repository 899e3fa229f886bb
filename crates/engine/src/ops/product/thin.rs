//! A few rows: the first factor of an adapter times what a begin makes. In a dispatch of its own time goes by in waiting, for memory and
//! for other lanes, so that the kernel has one pass over the columns and one meeting of lanes.

use bytemuck::NoUninit;
use rullama_gguf::DType;

use super::{Begin, of_branch::OfBranch};
use crate::{
    cpu::CpuCall,
    gpu::{DeviceFacts, Dispatch, GpuCall, Kernel, Place},
    graph::{Graph, Op, Type, Value},
    ops::{fused, parts},
};

static THIN: Kernel = Kernel { name: "product/thin", source: include_str!("thin.wgsl") };

/// Most lanes of a workgroup.
const MOST_LANES: usize = 1024;
/// Lanes where the columns cannot be dealt out evenly.
const SOME_LANES: usize = 256;
/// Most quads of a lane, where all lanes have as many.
const MOST_TURNS: usize = 8;
/// Most quads that a lane prefetches at once.
const MOST_AHEAD: usize = 3;

/// Inputs: those of the begin, and `A` `[r, k]`. Results: `h1` where the begin makes it, `x` where it is kept, then `A x`. No graph has it:
/// products take it apart for their dispatches.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Thin {
    /// What makes x.
    pub(super) begin: Begin,
    /// Whether x is a result.
    pub(super) keeps: bool,
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

impl Thin {
    fn unfused(&self, graph: &mut Graph, inputs: &[Value]) -> Vec<Value> {
        let (h1, x) = self.begin.rows(graph, inputs);
        let z = graph.linear(x, inputs[self.begin.inputs()]);
        h1.into_iter().chain(self.keeps.then_some(x)).chain([z]).collect()
    }

    /// `None` if no kernel has it.
    fn dispatch(&self, call: &GpuCall<'_>) -> Option<Dispatch> {
        let at = self.begin.inputs();
        let (a, shape) = (call.slabs(at), &call.input(0).shape);
        let factor = match a.dtype {
            DType::F16 => part!("factor", "f16"),
            DType::F32 => part!("factor", "f32"),
            _ => return None,
        };
        let (width, rows) = (shape.width(), call.input(at).shape.rows());
        if shape.rows() > 1 || a.rows.len() > 1 || !width.is_multiple_of(4) {
            return None;
        }
        let (eps, scaled) = match &self.begin {
            Begin::Plain => (0.0, false),
            Begin::Norm { eps } => (*eps, false),
            Begin::Added(op) => (op.eps, op.scaled),
        };
        let word = |n: usize| u32::try_from(n).expect("sizes of one weight fit 32 bits");
        let stride = word(a.row_blocks / 4);
        let branch = OfBranch::new(&self.begin, call)?;
        let cut = Cut::new(width / 4, call.facts);
        let dispatch = Dispatch::new(&THIN)
            .part(parts::team(call.facts))
            .part(factor)
            .constant("WG", cut.lanes as u32)
            .constant("LANES", cut.exchange as u32)
            .constant("SPLIT", (cut.lanes / cut.exchange) as u32)
            .constant("AHEAD", cut.ahead as u32)
            .params(&Params {
                width: word(width),
                stride,
                rows: word(rows),
                eps,
                scaled: scaled.into(),
                branch_stride: word(branch.as_ref().map_or(0, |branch| branch.stride)),
            })
            .grid_over(rows.div_ceil(2))
            .read(Place::Slab(at, 0))
            .read(Place::Input(0));
        let dispatch = match (branch, self.fronted(dispatch), &self.begin) {
            (Some(branch), dispatch, _) => branch.composed(dispatch, Some(a.dtype))?,
            (None, dispatch, Begin::Added(_)) => dispatch.part(part!("branch", "plain")),
            (None, dispatch, _) => dispatch,
        };
        (dispatch.bindings.len() <= call.facts.storage_buffers as usize).then_some(dispatch)
    }

    /// With the parts of the begin and the bindings after those of every thin product.
    fn fronted(&self, dispatch: Dispatch) -> Dispatch {
        let z = |h1: usize| Place::Output(h1 + usize::from(self.keeps));
        match &self.begin {
            Begin::Plain => dispatch.part(part!("front", "plain")).write(z(0)),
            Begin::Norm { .. } => {
                let dispatch =
                    dispatch.part(part!("front", "normed")).write(z(0)).read(Place::Input(1));
                match self.keeps {
                    true => dispatch.part(part!("hand", "6")).write(Place::Output(0)),
                    false => dispatch.part(part!("hand", "none")),
                }
            }
            Begin::Added(op) => {
                let dispatch = dispatch
                    .part(part!("front", "added"))
                    .write(z(1))
                    .read(Place::Input(1))
                    .read(Place::Input(2))
                    // Without a scale the weight stands in for it, unread.
                    .read(Place::Input(op.scale_input().unwrap_or(2)))
                    .write(Place::Output(0));
                let dispatch = match op.next_input() {
                    Some(next) => dispatch.part(part!("after", "norm")).read(Place::Input(next)),
                    None => dispatch.part(part!("after", "none")),
                };
                match self.keeps {
                    true => dispatch.part(part!("hand", "10")).write(Place::Output(1)),
                    false => dispatch.part(part!("hand", "none")),
                }
            }
        }
    }
}

/// How the columns are dealt out.
#[derive(Debug, PartialEq, Eq)]
struct Cut {
    /// Lanes of a workgroup.
    lanes: usize,
    /// Of these, how many exchange without memory.
    exchange: usize,
    /// Quads that a lane prefetches at once.
    ahead: usize,
}

impl Cut {
    fn new(quads: usize, facts: &DeviceFacts) -> Self {
        let exchange = facts.subgroups.map_or(32, |(least, _)| least.min(32)) as usize;
        // Sums meet in 16 bytes of a lane.
        let most =
            MOST_LANES.min(facts.invocations as usize).min(facts.workgroup_bytes as usize / 16);
        let even = |turns: &usize| {
            quads.is_multiple_of(turns * exchange) && (1..=most).contains(&(quads / turns))
        };
        match (1..=MOST_TURNS).find(even) {
            Some(turns) => {
                let ahead = if turns <= MOST_AHEAD { turns } else { 1 };
                Self { lanes: quads / turns, exchange, ahead }
            }
            None => Self { lanes: SOME_LANES.min(most), exchange, ahead: 1 },
        }
    }
}

impl Op for Thin {
    fn name(&self) -> &'static str {
        "thin"
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
    use super::{Cut, DeviceFacts};

    #[test]
    fn columns_are_dealt_out_evenly_where_that_is_possible() {
        let floor = DeviceFacts::floor();
        let large = DeviceFacts {
            invocations: 1024,
            workgroup_bytes: 48 << 10,
            subgroups: Some((32, 32)),
            ..DeviceFacts::floor()
        };
        for (width, facts, (lanes, ahead)) in [
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
            let cut = Cut::new(width / 4, facts);
            assert_eq!((cut.lanes, cut.ahead), (lanes, ahead), "{width}");
        }
    }
}
