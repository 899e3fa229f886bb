//! One workgroup per token, one lane per expert.

use bytemuck::NoUninit;

use super::{Router, RouterGrad};
use crate::{
    gpu::{Dispatch, GpuCall, Kernel, Part, Place},
    graph::Shape,
};

static FORWARD: Kernel = Kernel { name: "router/forward", source: include_str!("forward.wgsl") };
static BACKWARD: Kernel = Kernel { name: "router/backward", source: include_str!("backward.wgsl") };
static SHARES: Part = Part { kind: "shares", name: "shares", source: include_str!("shares.wgsl") };

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    experts: u32,
    chosen: u32,
    tokens: u32,
    factor: f32,
}

pub(super) fn forward(op: &Router, call: &GpuCall<'_>) -> Vec<Dispatch> {
    vec![
        launch(&FORWARD, &call.input(0).shape, op.chosen, op.factor)
            .read(Place::Input(0))
            .read(Place::Input(1))
            .write(Place::Output(0))
            .write(Place::Output(1)),
    ]
}

pub(super) fn backward(op: &RouterGrad, call: &GpuCall<'_>) -> Vec<Dispatch> {
    vec![
        launch(&BACKWARD, &call.input(0).shape, call.input(2).shape.width(), op.factor)
            .read(Place::Input(0))
            .read(Place::Input(1))
            .read(Place::Input(2))
            .read(Place::Input(3))
            .write(Place::Output(0)),
    ]
}

fn launch(kernel: &'static Kernel, logits: &Shape, chosen: usize, factor: f32) -> Dispatch {
    let (tokens, experts) = (logits.rows(), logits.width());
    Dispatch::new(kernel)
        .part(&SHARES)
        .constant("WG", lanes(experts) as u32)
        .params(&Params {
            experts: experts as u32,
            chosen: chosen as u32,
            tokens: tokens as u32,
            factor,
        })
        .grid_over(tokens)
}

/// A lane for each expert, in whole warps.
fn lanes(experts: usize) -> usize {
    experts.next_multiple_of(32)
}

#[cfg(test)]
mod tests {
    use super::lanes;

    #[test]
    fn every_expert_has_a_lane() {
        for (experts, wanted) in [(1, 32), (32, 32), (33, 64), (128, 128), (256, 256)] {
            assert_eq!(lanes(experts), wanted, "{experts} experts");
        }
    }
}
