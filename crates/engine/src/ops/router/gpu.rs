//! One workgroup per token; one lane per expert, or several that share its comparisons.

use bytemuck::NoUninit;

use super::{GRAD_SCALE, Router, RouterGrad, SCALE};
use crate::{
    gpu::{BufferRef, DeviceFacts, Dispatch, GpuCall, Kernel, Part},
    graph::Shape,
};

static FORWARD: Kernel = Kernel { name: "router/forward", source: include_str!("forward.wgsl") };
static BACKWARD: Kernel = Kernel { name: "router/backward", source: include_str!("backward.wgsl") };
static SHARES: &Part = part!("shares", "softmax");

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    experts: u32,
    chosen: u32,
    tokens: u32,
    factor: f32,
}

pub(super) fn forward(op: &Router, call: &GpuCall<'_>) -> Vec<Dispatch> {
    let logits = &call.input(0).shape;
    let experts = lanes(logits.width());
    vec![
        dispatch(&FORWARD, logits, op.chosen, op.factor)
            .constant("EXPERTS", experts as u32)
            .constant("WG", (experts * sharing(experts, call.facts)) as u32)
            .constant("SCALED", u32::from(call.inputs() > SCALE))
            .read(BufferRef::Input(0))
            .read(BufferRef::Input(scale(call, SCALE)))
            .write(BufferRef::Output(0))
            .write(BufferRef::Output(1)),
    ]
}

pub(super) fn backward(op: &RouterGrad, call: &GpuCall<'_>) -> Vec<Dispatch> {
    vec![
        dispatch(&BACKWARD, &call.input(0).shape, call.input(1).shape.width(), op.factor)
            .constant("WG", lanes(call.input(0).shape.width()) as u32)
            .constant("SCALED", u32::from(call.inputs() > GRAD_SCALE))
            .read(BufferRef::Input(0))
            .read(BufferRef::Input(scale(call, GRAD_SCALE)))
            .read(BufferRef::Input(1))
            .read(BufferRef::Input(2))
            .write(BufferRef::Output(0)),
    ]
}

/// The index of the input with the experts' scales, `at`; without scales the logits, which are then bound and not read.
fn scale(call: &GpuCall<'_>, at: usize) -> usize {
    if call.inputs() > at { at } else { 0 }
}

fn dispatch(kernel: &'static Kernel, logits: &Shape, chosen: usize, factor: f32) -> Dispatch {
    let (tokens, experts) = (logits.rows(), logits.width());
    Dispatch::new(kernel)
        .part(SHARES)
        .params(&Params {
            experts: experts as u32,
            chosen: chosen as u32,
            tokens: tokens as u32,
            factor,
        })
        .grid_over(tokens)
}

/// One lane per expert, in whole subgroups of 32.
fn lanes(experts: usize) -> usize {
    experts.next_multiple_of(32)
}

/// Lanes that share the comparisons of an expert: each has at least four.
fn sharing(experts: usize, facts: &DeviceFacts) -> usize {
    let most = (facts.invocations as usize / experts).min(experts / 4).max(1);
    // A power of two, so that the comparisons are divided evenly.
    1 << most.ilog2()
}

#[cfg(test)]
mod tests {
    use super::{lanes, sharing};
    use crate::gpu::DeviceFacts;

    #[test]
    fn lanes_share_comparisons_if_there_are_enough() {
        let floor = DeviceFacts::floor();
        let large = DeviceFacts { invocations: 1024, ..DeviceFacts::floor() };
        for (experts, facts, wanted) in
            [(32, &floor, 8), (96, &large, 8), (128, &floor, 2), (128, &large, 8), (256, &floor, 1)]
        {
            assert_eq!(sharing(experts, facts), wanted, "{experts} experts");
        }
    }

    #[test]
    fn every_expert_has_a_lane() {
        for (experts, wanted) in [(1, 32), (32, 32), (33, 64), (128, 128), (256, 256)] {
            assert_eq!(lanes(experts), wanted, "{experts} experts");
        }
    }
}
