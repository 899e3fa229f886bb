//! Suppresses tokens that must never be sampled: `y[r, i] = −∞` if `i` is in `ids`, else `x[r, i]`.

pub(crate) mod cases;

use bytemuck::NoUninit;

use crate::{
    cpu::CpuCall,
    gpu::{BufferRef, Dispatch, GpuCall, Kernel},
    graph::{Element, Graph, Op, Type, Value},
};

static FORWARD: Kernel = Kernel { name: "suppress/forward", source: include_str!("forward.wgsl") };

/// Minus infinity at the given ids. The list is short: every lane searches it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suppress;

impl Graph {
    /// Logits `[t, v]` with those of `ids` set to minus infinity; ids beyond the vocabulary do nothing.
    pub fn suppress(&mut self, logits: Value, ids: Value) -> Value {
        self.apply(Suppress, &[logits, ids])
    }
}

impl Op for Suppress {
    fn name(&self) -> &'static str {
        "suppress"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        assert_eq!(inputs[1].element, Element::U32, "suppress takes ids, not {}", inputs[1]);
        vec![inputs[0].clone()]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (x, ids, mut y) = (call.f32(0), call.u32(1), call.out(0));
        let width = call.input(0).shape.width();
        y.copy_from_slice(&x);
        for row in y.chunks_exact_mut(width) {
            for id in ids.iter() {
                if let Some(logit) = row.get_mut(*id as usize) {
                    *logit = f32::NEG_INFINITY;
                }
            }
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        let shape = &call.input(0).shape;
        let params = Params {
            len: shape.len() as u32,
            width: shape.width() as u32,
            ids: call.input(1).shape.len() as u32,
        };
        vec![
            Dispatch::new(&FORWARD)
                .params(&params)
                .read(BufferRef::Input(0))
                .read(BufferRef::Input(1))
                .write(BufferRef::Output(0))
                .grid_over(shape.len().div_ceil(256)),
        ]
    }
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    len: u32,
    width: u32,
    ids: u32,
}
