//! The end of a denoising step of block diffusion: probabilities of each position of a canvas, and which positions accept their drawn token.

pub(crate) mod cases;

use bytemuck::NoUninit;

use super::logit_order::key;
use crate::{
    cpu::CpuCall,
    gpu::{BufferRef, Dispatch, GpuCall, Kernel},
    graph::{Graph, Op, Type, Value},
    ops::parts::reduce,
};

static SOFTMAX: Kernel =
    Kernel { name: "block_diffusion/softmax", source: include_str!("softmax.wgsl") };
static ACCEPT: Kernel =
    Kernel { name: "block_diffusion/accept", source: include_str!("accept.wgsl") };

/// Lanes per row: probabilities are summed lane by lane for the draw.
const LANES: usize = 256;

/// `p = softmax(z)` of each row, written to a state; its entropy `−Σ p ln p`, its most likely id, and an id drawn with a uniform number in
/// [0, 1). Inputs: `z` `[n, v]`, the uniform numbers `[n]`, the state `[n, v]`. Results: entropies, most likely ids, drawn ids, each `[n]`.
///
/// The draw orders ids by their remainder modulo 256: any order gives the same distribution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanvasSoftmax;

/// Accepts positions in order of rising entropy while the entropies before sum to no more than a bound. Accepted positions get their drawn
/// token, others noise. Inputs: entropies, most likely ids, drawn ids and noise `[n]`, the bound `[1]`, and two states `[n]`: the canvas
/// and the most likely ids of the previous step. Result `[3]`: mean entropy, number of changed most likely ids, number of accepted positions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanvasAccept;

/// The token candidates of a canvas after a step.
#[derive(Debug, Clone, Copy)]
pub struct CanvasTokens {
    /// Entropies `[n]`.
    pub entropy: Value,
    /// The most likely ids `[n]`.
    pub best: Value,
    /// Drawn ids `[n]`.
    pub drawn: Value,
}

impl Graph {
    /// Softmax of the rows of `z` `[n, v]`, written to `state` `[n, v]`; `uniform` `[n]` are the random numbers of the draws.
    pub fn canvas_softmax(&mut self, z: Value, uniform: Value, state: Value) -> CanvasTokens {
        let results = self.apply_all(CanvasSoftmax, &[z, uniform, state]);
        CanvasTokens { entropy: results[0], best: results[1], drawn: results[2] }
    }

    /// Accepts tokens of a canvas, see [`CanvasAccept`]; `states` are the canvas and the most likely ids of the previous step.
    pub fn canvas_accept(
        &mut self,
        tokens: &CanvasTokens,
        noise: Value,
        bound: Value,
        states: (Value, Value),
    ) -> Value {
        let CanvasTokens { entropy, best, drawn } = *tokens;
        self.apply(CanvasAccept, &[entropy, best, drawn, noise, bound, states.0, states.1])
    }
}

impl Op for CanvasSoftmax {
    fn name(&self) -> &'static str {
        "canvas_softmax"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let [z, uniform, state] = inputs else {
            panic!("canvas_softmax takes z, uniform numbers and a state")
        };
        let n = z.shape.rows();
        assert_eq!(z, state, "canvas_softmax: the state must have the type of z");
        assert_eq!(**uniform, Type::f32([n]), "canvas_softmax: one uniform number per row");
        vec![Type::f32([n]), Type::u32([n]), Type::u32([n])]
    }

    fn writes(&self) -> &'static [usize] {
        &[2]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (z, uniform, width) = (call.f32(0), call.f32(1), call.input(0).shape.width());
        let mut state = call.state(2);
        let (mut entropy, mut best, mut drawn) = (call.out(0), call.out_u32(1), call.out_u32(2));
        for (row, z) in z.chunks_exact(width).enumerate() {
            let mut most = 0;
            for id in 1..width {
                if key(z[id]) > key(z[most]) {
                    most = id;
                }
            }
            let largest = z[most];
            let part = |lane: usize| {
                (lane..width).step_by(LANES).map(|id| (z[id] - largest).exp()).sum::<f32>()
            };
            let parts: Vec<f32> = (0..LANES).map(part).collect();
            let sum: f32 = parts.iter().sum();
            let heat: f32 = z.iter().map(|x| (x - largest).exp() * (x - largest)).sum();
            entropy[row] = sum.ln() - heat / sum;
            best[row] = most as u32;
            drawn[row] = draw(z, largest, &parts, uniform[row]) as u32;
            let probabilities = &mut state[row * width..][..width];
            probabilities.iter_mut().zip(z).for_each(|(p, x)| *p = (x - largest).exp() / sum);
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        let shape = &call.input(0).shape;
        let params = SoftmaxParams { rows: shape.rows() as u32, width: shape.width() as u32 };
        vec![
            Dispatch::new(&SOFTMAX)
                .part(reduce(call.facts))
                .constant("WG", LANES as u32)
                .params(&params)
                .read(BufferRef::Input(0))
                .read(BufferRef::Input(1))
                .write(BufferRef::Input(2))
                .write(BufferRef::Output(0))
                .write(BufferRef::Output(1))
                .write(BufferRef::Output(2))
                .grid_over(shape.rows()),
        ]
    }
}

/// The first id, lane by lane, at which the cumulative probability reaches `uniform`.
fn draw(z: &[f32], largest: f32, parts: &[f32], uniform: f32) -> usize {
    let threshold = uniform * parts.iter().sum::<f32>();
    let mut before = 0.0;
    let (mut lane, mut start) = (0, 0.0);
    for (index, part) in parts.iter().enumerate().filter(|(_, part)| **part > 0.0) {
        (lane, start) = (index, before);
        before += part;
        if before >= threshold {
            break;
        }
    }
    let (mut sum, mut chosen) = (start, lane);
    for id in (lane..z.len()).step_by(LANES) {
        let weight = (z[id] - largest).exp();
        if weight > 0.0 {
            chosen = id;
        }
        sum += weight;
        if sum >= threshold {
            break;
        }
    }
    chosen
}

impl Op for CanvasAccept {
    fn name(&self) -> &'static str {
        "canvas_accept"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let n = inputs[0].shape.len();
        let ids = [1, 2, 3, 5, 6].iter().all(|i| *inputs[*i] == Type::u32([n]));
        assert!(inputs.len() == 7 && ids, "canvas_accept takes entropies and ids of {n} positions");
        assert_eq!(*inputs[4], Type::f32([1]), "canvas_accept: one bound");
        vec![Type::f32([3])]
    }

    fn writes(&self) -> &'static [usize] {
        &[5, 6]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (entropy, best, drawn, noise) = (call.f32(0), call.u32(1), call.u32(2), call.u32(3));
        let bound = call.f32(4)[0];
        let (mut canvas, mut before) = (call.state_u32(5), call.state_u32(6));
        let mut statistics = call.out(0);
        let mut accepted = 0;
        let n = entropy.len();
        let changed = (0..n).filter(|i| best[*i] != before[*i]).count();
        for i in 0..n {
            let earlier = |j: &usize| {
                let (own, other) = (key(entropy[i]), key(entropy[*j]));
                other < own || (other == own && *j < i)
            };
            let sum: f32 = (0..n).filter(earlier).map(|j| entropy[j]).sum();
            accepted += usize::from(sum <= bound);
            canvas[i] = if sum <= bound { drawn[i] } else { noise[i] };
            before[i] = best[i];
        }
        statistics[0] = entropy.iter().sum::<f32>() / n as f32;
        statistics[1] = changed as f32;
        statistics[2] = accepted as f32;
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        let params = AcceptParams { positions: call.input(0).shape.len() as u32 };
        let read = |dispatch, input| Dispatch::read(dispatch, BufferRef::Input(input));
        let dispatch = Dispatch::new(&ACCEPT).part(reduce(call.facts)).constant("WG", LANES as u32);
        let dispatch = [0, 1, 2, 3, 4].into_iter().fold(dispatch.params(&params), read);
        let dispatch = dispatch.write(BufferRef::Input(5)).write(BufferRef::Input(6));
        vec![dispatch.write(BufferRef::Output(0))]
    }
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct SoftmaxParams {
    rows: u32,
    width: u32,
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct AcceptParams {
    positions: u32,
}
