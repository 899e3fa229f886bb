//! Leaves out numbers at random: `y = x / (1 − rate)` where a number stays, else 0.
//!
//! Which ones stay follows from the run's seed, the place of the operation in the model and the place of the number, so that the
//! gradient, and the same operation computed again, leave out the same.

pub(crate) mod cases;

use bytemuck::NoUninit;

use crate::{
    cpu::CpuCall,
    gpu::{BufferRef, Dispatch, GpuCall, Kernel},
    graph::{Graph, NodeValues, Op, Type, Value},
};

static FORWARD: Kernel = Kernel { name: "dropout/forward", source: include_str!("forward.wgsl") };

/// Leaves out numbers at random.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dropout {
    /// The share that is left out, from 0 to less than 1.
    pub rate: f32,
    /// Tells operations of one run apart.
    pub salt: u32,
}

impl Graph {
    /// `x` with some numbers left out.
    pub fn dropout(&mut self, x: Value, op: Dropout) -> Value {
        self.apply(op, &[x])
    }
}

impl Dropout {
    /// Numbers whose random bits are below this are left out.
    fn limit(self) -> u32 {
        // Fits: the rate is below 1. Saturates for rates that are not.
        (f64::from(self.rate) * 4_294_967_296.0) as u32
    }

    fn stays(self, seed: u32, place: u32) -> bool {
        random(seed ^ random(self.salt ^ random(place))) >= self.limit()
    }

    fn factor(self) -> f32 {
        1.0 / (1.0 - self.rate)
    }
}

/// Well mixed bits of a number.
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
        for (place, (y, x)) in (0u32..).zip(y.iter_mut().zip(x.iter())) {
            *y = if self.stays(call.step.seed, place) { x * self.factor() } else { 0.0 };
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
