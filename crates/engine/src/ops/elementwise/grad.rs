//! Gradient rules, in terms of the same functions.

use super::{Activation, Elementwise};
use crate::graph::{Graph, NodeValues, Op, Value};

pub(super) fn rule(
    op: &Elementwise,
    graph: &mut Graph,
    node: &NodeValues,
    dy: Value,
) -> Vec<Option<Value>> {
    let (x, y) = (&node.inputs, node.outputs[0]);
    match op {
        Elementwise::Mul => vec![Some(graph.mul(dy, x[1])), Some(graph.mul(dy, x[0]))],
        Elementwise::Scale { by } => vec![Some(graph.scale(dy, *by))],
        Elementwise::ScaleBy => vec![Some(graph.scale_by(dy, x[1])), None],
        Elementwise::Gelu => vec![Some(graph.apply(Elementwise::GeluGrad, &[x[0], dy]))],
        Elementwise::Gated(activation) => {
            let (slope, gate) = match activation {
                Activation::Gelu => (Elementwise::GeluGrad, graph.gelu(x[0])),
                Activation::Silu => (Elementwise::SiluGrad, graph.silu(x[0])),
            };
            let through_gate = graph.mul(dy, x[1]);
            let da = graph.apply(slope, &[x[0], through_gate]);
            vec![Some(da), Some(graph.mul(dy, gate))]
        }
        Elementwise::GatedHalves(activation) => {
            vec![Some(graph.apply(Elementwise::GatedHalvesGrad(*activation), &[x[0], dy]))]
        }
        Elementwise::Silu => vec![Some(graph.apply(Elementwise::SiluGrad, &[x[0], dy]))],
        Elementwise::AddRow => vec![Some(dy), None],
        Elementwise::Softcap { cap } => {
            vec![Some(graph.apply(Elementwise::SoftcapGrad { cap: *cap }, &[y, dy]))]
        }
        Elementwise::GeluMulSlice { slice } => {
            let slices = graph.ty(x[1]).shape.width() / graph.ty(x[0]).shape.width();
            let through_gelu = graph.apply(Elementwise::MulSlice { slice: *slice }, &[dy, x[1]]);
            let du = graph.apply(Elementwise::GeluGrad, &[x[0], through_gelu]);
            let gate = graph.gelu(x[0]);
            let in_slice = graph.mul(dy, gate);
            let place = Elementwise::PlaceSlice { slice: *slice, slices };
            vec![Some(du), Some(graph.apply(place, &[in_slice]))]
        }
        Elementwise::GeluGrad
        | Elementwise::GatedHalvesGrad(_)
        | Elementwise::SiluGrad
        | Elementwise::SoftcapGrad { .. }
        | Elementwise::Clamp { .. }
        | Elementwise::Standardise
        | Elementwise::GluHalves
        | Elementwise::ScaleRow { .. }
        | Elementwise::MulSlice { .. }
        | Elementwise::PlaceSlice { .. } => panic!("{} has no gradient rule", op.name()),
    }
}
