//! Dropout: `y = x / (1 − rate)` for kept elements, else 0.
//!
//! The kept elements depend on the step's seed, the operation's salt and the element's index, so that the gradient and a recomputed forward
//! pass drop the same.

pub(crate) mod cases;

use bytemuck::NoUninit;

use crate::{
    cpu::CpuCall,
    gpu::{BufferRef, Dispatch, GpuCall, Kernel},
    graph::{Graph, NodeValues, Op, Type, Value},
};

static FORWARD: Kernel = Kernel { name: "dropout/forward", source: include_str!("forward.wgsl") };

/// Drops random elements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dropout {
    /// The share of dropped elements, in [0, 1).
    pub rate: f32,
    /// Distinguishes the operations of a graph.
    pub salt: u32,
}

impl Graph {
    /// `x` with random elements dropped.
    pub fn dropout(&mut self, x: Value, op: Dropout) -> Value {
        self.apply(op, &[x])
    }
}

impl Dropout {
    /// Elements whose random bits are below this are dropped.
    fn limit(self) -> u32 {
        // Fits, since the rate is below 1; otherwise the cast saturates.
        (f64::from(self.rate) * 4_294_967_296.0) as u32
    }

    fn keeps(self, seed: u32, index: u32) -> bool {
        random(seed ^ random(self.salt ^ random(index))) >= self.limit()
    }

    fn factor(self) -> f32 {
        1.0 / (1.0 - self.rate)
    }
}

/// A hash of `x`.
fn random(x: u32) -> u32 {
    let mut x = x.wrapping_add(0x9e37_79b9);
    x = (x ^ (x >> 16)).wrapping_mul(0x85eb_ca6b);
    x = (x ^ (x >> 13)).wrapping_mul(0xc2b2_ae35);
    x ^ (x >> 16)
}

impl Op for Dropout {
    fn name(&self) -> &'static str {
        "dropout"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        assert!((0.0..1.0).contains(&self.rate), "dropout: a rate of {}", self.rate);
        vec![inputs[0].clone()]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (x, mut y) = (call.f32(0), call.out(0));
        for (index, (y, x)) in (0u32..).zip(y.iter_mut().zip(x.iter())) {
            *y = if self.keeps(call.step.seed, index) { x * self.factor() } else { 0.0 };
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        let len = call.input(0).shape.len();
        let params =
            Params { len: len as u32, salt: self.salt, limit: self.limit(), factor: self.factor() };
        vec![
            Dispatch::new(&FORWARD)
                .params(&params)
                .read(BufferRef::Input(0))
                .write(BufferRef::Output(0))
                .grid_over(len.div_ceil(256)),
        ]
    }

    fn grad(&self, graph: &mut Graph, _: &NodeValues, dy: &[Option<Value>]) -> Vec<Option<Value>> {
        vec![dy[0].map(|dy| graph.dropout(dy, *self))]
    }
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    len: u32,
    salt: u32,
    limit: u32,
    factor: f32,
}
