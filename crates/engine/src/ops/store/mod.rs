//! Copies a value into a state, such as the sampled token, from which the next run reads it.

pub(crate) mod cases;

use bytemuck::NoUninit;

use crate::{
    cpu::CpuCall,
    gpu::{BufferRef, Dispatch, GpuCall, Kernel},
    graph::{Element, Graph, Op, Type, Value},
};

static COPY: Kernel = Kernel { name: "store/copy", source: include_str!("copy.wgsl") };

/// Copies its second input into its first, a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    /// First element of the state that is written.
    pub first: usize,
}

impl Graph {
    /// Writes `value` into `state`; both f32 or both ids, of one shape.
    pub fn store(&mut self, state: Value, value: Value) {
        assert_eq!(self.ty(state), self.ty(value), "store: state and value must have one type");
        self.store_at(state, 0, value);
    }

    /// Writes `value` into `state` from element `first` on; both f32 or both ids.
    pub fn store_at(&mut self, state: Value, first: usize, value: Value) {
        self.apply_all(Store { first }, &[state, value]);
    }
}

impl Op for Store {
    fn name(&self) -> &'static str {
        "store"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let fits = inputs[0].element == inputs[1].element
            && self.first + inputs[1].shape.len() <= inputs[0].shape.len();
        assert!(fits, "store: {} at {} of {}", inputs[1], self.first, inputs[0]);
        let words = matches!(inputs[0].element, Element::F32 | Element::U32);
        assert!(words, "store copies f32 or ids, not {}", inputs[0]);
        vec![]
    }

    fn writes(&self) -> &'static [usize] {
        &[0]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let target = self.first..self.first + call.input(1).shape.len();
        if call.input(0).element == Element::U32 {
            call.state_u32(0)[target].copy_from_slice(&call.u32(1));
        } else {
            call.state(0)[target].copy_from_slice(&call.f32(1));
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        let len = call.input(1).shape.len();
        vec![
            Dispatch::new(&COPY)
                .params(&Params { len: len as u32, first: self.first as u32 })
                .read(BufferRef::Input(1))
                .write(BufferRef::Input(0))
                .grid_over(len.div_ceil(256)),
        ]
    }
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    len: u32,
    first: u32,
}
