//! States that accumulate over runs: `state = state + value`, and `state = 0`.

pub(crate) mod cases;

use bytemuck::NoUninit;

use crate::{
    cpu::CpuCall,
    gpu::{BufferRef, Dispatch, GpuCall, Kernel},
    graph::{Element, Graph, Op, Type, Value},
};

static SUM: Kernel = Kernel { name: "accumulate/sum", source: include_str!("sum.wgsl") };
static CLEAR: Kernel = Kernel { name: "accumulate/clear", source: include_str!("clear.wgsl") };

/// Adds its second input to its first, a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accumulate;

/// Sets its input, a state, to zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clear;

impl Graph {
    /// Adds `value` to `state`, both f32 of one shape.
    pub fn accumulate(&mut self, state: Value, value: Value) {
        self.apply_all(Accumulate, &[state, value]);
    }

    /// Sets an f32 state to zero.
    pub fn clear(&mut self, state: Value) {
        self.apply_all(Clear, &[state]);
    }
}

impl Op for Accumulate {
    fn name(&self) -> &'static str {
        "accumulate"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let fits = inputs[0] == inputs[1] && inputs[0].element == Element::F32;
        assert!(fits, "accumulate: {} onto {}", inputs[1], inputs[0]);
        vec![]
    }

    fn writes(&self) -> &'static [usize] {
        &[0]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let value = call.f32(1);
        call.state(0).iter_mut().zip(value.iter()).for_each(|(sum, value)| *sum += value);
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        vec![over(&SUM, call).read(BufferRef::Input(1)).write(BufferRef::Input(0))]
    }
}

impl Op for Clear {
    fn name(&self) -> &'static str {
        "clear"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        assert_eq!(inputs[0].element, Element::F32, "clear: {}", inputs[0]);
        vec![]
    }

    fn writes(&self) -> &'static [usize] {
        &[0]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        call.state(0).fill(0.0);
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        vec![over(&CLEAR, call).write(BufferRef::Input(0))]
    }
}

fn over(kernel: &'static Kernel, call: &GpuCall<'_>) -> Dispatch {
    let len = call.input(0).shape.len();
    Dispatch::new(kernel).params(&Params { len: len as u32 }).grid_over(len.div_ceil(256))
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    len: u32,
}
