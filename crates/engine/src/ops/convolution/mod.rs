//! Convolutions of the audio encoders.
//!
//! 2-D, 3 × 3 with stride 2 and zero padding: `y[t, f, o] = Σ w[o, c, a, b] · x[2t + a − 1, 2f + b − 1, c]` with `a, b < 3`.
//! Causal depthwise 1-D: `y[t, c] = Σ w[c, j] · x[t − k + 1 + j, c]`.

pub(crate) mod cases;
mod gpu;

use crate::{
    cpu::CpuCall,
    gpu::{Dispatch, GpuCall},
    graph::{Graph, Op, Type, Value},
};

/// Side of the 2-D kernel.
const SIDE: usize = 3;

/// A 3 × 3 convolution with stride 2 over rows of `columns` positions of channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvolveStride2 {
    /// Positions along the second axis.
    pub columns: usize,
}

/// A causal depthwise convolution over the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvolveCausal;

impl Graph {
    /// Convolves `x` `[t, columns · c]` with a weight of `o · c · 9` elements, in the order out, in, first axis, second axis. The result is
    /// `[⌈t/2⌉, ⌈columns/2⌉ · o]`.
    pub fn convolve_stride2(&mut self, x: Value, weight: Value, columns: usize) -> Value {
        self.apply(ConvolveStride2 { columns }, &[x, weight])
    }

    /// Convolves each column of `x` `[t, c]` with its own `k` weights; zeros precede the first row.
    pub fn convolve_causal(&mut self, x: Value, weight: Value) -> Value {
        self.apply(ConvolveCausal, &[x, weight])
    }
}

/// Sizes of a 2-D convolution.
struct Plane {
    rows: usize,
    columns: usize,
    channels: usize,
    out_channels: usize,
}

impl ConvolveStride2 {
    fn plane(&self, x: &Type, weight: &Type) -> Plane {
        let channels = x.shape.width() / self.columns;
        let out_channels = weight.shape.len() / (channels * SIDE * SIDE);
        Plane { rows: x.shape.rows(), columns: self.columns, channels, out_channels }
    }
}

impl Plane {
    fn positions(&self) -> usize {
        self.rows.div_ceil(2) * self.columns.div_ceil(2)
    }
}

impl Op for ConvolveStride2 {
    fn name(&self) -> &'static str {
        "convolve_stride2"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let (x, weight) = (inputs[0], inputs[1]);
        let plane = self.plane(x, weight);
        let whole = x.shape.width() == plane.columns * plane.channels
            && weight.shape.len() == plane.out_channels * plane.channels * SIDE * SIDE;
        assert!(whole, "convolve_stride2: {x} in {} columns with {weight}", self.columns);
        vec![Type::f32([plane.rows.div_ceil(2), plane.columns.div_ceil(2) * plane.out_channels])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (x, w, mut y) = (call.f32(0), call.decoded(1), call.out(0));
        let plane = self.plane(call.input(0), call.input(1));
        let across = plane.columns.div_ceil(2);
        let inside =
            |at: usize, tap: usize, end: usize| (2 * at + tap).checked_sub(1).filter(|i| *i < end);
        for (i, y) in y.iter_mut().enumerate() {
            let (position, out) = (i / plane.out_channels, i % plane.out_channels);
            let mut sum = 0.0;
            for tap in 0..SIDE * SIDE {
                let row = inside(position / across, tap / SIDE, plane.rows);
                let column = inside(position % across, tap % SIDE, plane.columns);
                let (Some(row), Some(column)) = (row, column) else { continue };
                let x = &x[(row * plane.columns + column) * plane.channels..][..plane.channels];
                for (channel, x) in x.iter().enumerate() {
                    sum += x * w[(out * plane.channels + channel) * SIDE * SIDE + tap];
                }
            }
            *y = sum;
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::half(&self.plane(call.input(0), call.input(1)))
    }

    fn operations(&self, inputs: &[&Type], outputs: &[&Type]) -> u64 {
        let taps = inputs[0].shape.width() / self.columns * SIDE * SIDE;
        2 * outputs[0].shape.len() as u64 * taps as u64
    }
}

impl Op for ConvolveCausal {
    fn name(&self) -> &'static str {
        "convolve_causal"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let (x, weight) = (inputs[0], inputs[1]);
        let taps = weight.shape.len() / x.shape.width();
        let whole = taps > 0 && weight.shape.len() == taps * x.shape.width();
        assert!(whole, "convolve_causal: {x} with {weight}");
        vec![Type::f32(x.shape.clone())]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (x, w, mut y) = (call.f32(0), call.decoded(1), call.out(0));
        let columns = call.input(0).shape.width();
        let taps = w.len() / columns;
        for (i, y) in y.iter_mut().enumerate() {
            let (row, column) = (i / columns, i % columns);
            let past = |tap: usize| (row + tap + 1).checked_sub(taps);
            let product = |tap: usize| {
                past(tap).map_or(0.0, |row| x[row * columns + column] * w[column * taps + tap])
            };
            *y = (0..taps).map(product).sum();
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        gpu::past(call)
    }
}
