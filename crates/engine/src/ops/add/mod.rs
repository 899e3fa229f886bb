//! `y = a + b`, elementwise.

pub(crate) mod cases;

use bytemuck::NoUninit;

use crate::{
    cpu::CpuCall,
    gpu::{BufferRef, Dispatch, GpuCall, Kernel},
    graph::{Graph, NodeValues, Op, Type, Value},
};

static FORWARD: Kernel = Kernel { name: "add/forward", source: include_str!("forward.wgsl") };

/// Sum of two values of one shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Add;

impl Graph {
    /// `a + b`.
    pub fn add(&mut self, a: Value, b: Value) -> Value {
        self.apply(Add, &[a, b])
    }
}

impl Op for Add {
    fn name(&self) -> &'static str {
        "add"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        assert_eq!(inputs[0], inputs[1], "add: both sides must have one type");
        vec![inputs[0].clone()]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (a, b, mut y) = (call.f32(0), call.f32(1), call.out(0));
        for i in 0..y.len() {
            y[i] = a[i] + b[i];
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        let len = call.output(0).shape.len();
        let dispatch = Dispatch::new(&FORWARD).params(&Params { len: len as u32 });
        vec![
            dispatch
                .read(BufferRef::Input(0))
                .read(BufferRef::Input(1))
                .write(BufferRef::Output(0))
                .grid_over(len.div_ceil(256)),
        ]
    }

    fn grad(&self, _: &mut Graph, _: &NodeValues, dy: &[Option<Value>]) -> Vec<Option<Value>> {
        vec![dy[0], dy[0]]
    }
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    len: u32,
}
