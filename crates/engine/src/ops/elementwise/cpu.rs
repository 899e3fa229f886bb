//! The CPU references, one element at a time.

use super::{Activation, Elementwise};
use crate::{
    cpu::{
        CpuCall,
        simd::{gelu_mul, silu_mul, softcap},
    },
    threads::for_pieces,
};

const ROOT_2_OVER_PI: f32 = 0.797_884_6;
const CUBIC: f32 = 0.044_715;
/// Cost of an element, in multiplications: that of a hyperbolic tangent or exponential.
const COST: u64 = 32;
/// Elements that a core computes at a time.
const PIECE: usize = 1024;

pub(super) fn forward(op: &Elementwise, call: &CpuCall<'_>) {
    let inputs: Vec<_> = (0..call.inputs()).map(|i| call.values(i)).collect();
    let inputs: Vec<&[f32]> = inputs.iter().map(|values| &**values).collect();
    let width = call.output(0).shape.width();
    let other = op.other_width(&|i| call.input(i).shape.width());
    let offset = op.offset(&|i| call.input(i).shape.width());
    let at = |i: usize| Element { i, row: i / width, column: i % width, other, offset };
    let mut y = call.out(0);
    // Pieces of whole rows, or of one row.
    let piece = if y.len() == width { PIECE } else { width };
    let compute = |(): &mut (), index: usize, y: &mut [f32]| {
        let first = at(index * piece);
        if let Some((by, gate, up)) = gated(op, &inputs, &first, y.len()) {
            return by.gated(gate, up, y);
        }
        if let Elementwise::Softcap { cap } = op {
            return softcap(*cap, &inputs[0][first.i..][..y.len()], y);
        }
        for (i, y) in y.iter_mut().enumerate() {
            *y = element(op, &inputs, &at(first.i + i));
        }
    };
    let operations = COST * y.len() as u64;
    for_pieces(&mut y, piece, operations, || (), compute);
}

/// Gate and factor of the `len` elements of a row from `first` on, for gated activations.
fn gated<'a>(
    op: &Elementwise,
    x: &[&'a [f32]],
    first: &Element,
    len: usize,
) -> Option<(Activation, &'a [f32], &'a [f32])> {
    let part = |x: &'a [f32], from: usize| &x[from..][..len];
    Some(match op {
        Elementwise::Gated(by) => (*by, part(x[0], first.i), part(x[1], first.i)),
        Elementwise::GatedHalves(by) => {
            let gate = first.row * first.other + first.column;
            (*by, part(x[0], gate), part(x[0], gate + first.other / 2))
        }
        Elementwise::GeluMulSlice { .. } => {
            (Activation::Gelu, part(x[0], first.i), part(x[1], first.in_slice()))
        }
        _ => return None,
    })
}

/// Position of an element, and the row width and slice offset of the input whose rows differ from the result's.
struct Element {
    i: usize,
    row: usize,
    column: usize,
    other: usize,
    offset: usize,
}

impl Element {
    /// Index of the same row and column in a slice of the longer rows.
    fn in_slice(&self) -> usize {
        self.row * self.other + self.offset + self.column
    }
}

fn element(op: &Elementwise, x: &[&[f32]], at: &Element) -> f32 {
    let i = at.i;
    match op {
        Elementwise::Mul => x[0][i] * x[1][i],
        Elementwise::Scale { by } => x[0][i] * by,
        Elementwise::ScaleBy => x[0][i] * x[1][0],
        Elementwise::Gelu => gelu(x[0][i]),
        Elementwise::GeluGrad => x[1][i] * gelu_slope(x[0][i]),
        Elementwise::Gated(by) => by.of(x[0][i]) * x[1][i],
        Elementwise::GatedHalves(by) => {
            let a = at.row * at.other + at.column;
            by.of(x[0][a]) * x[0][a + at.other / 2]
        }
        Elementwise::GatedHalvesGrad(by) => {
            let dy = x[1][at.row * at.other + at.column % at.other];
            if at.column < at.other {
                dy * x[0][i + at.other] * by.slope(x[0][i])
            } else {
                dy * by.of(x[0][i - at.other])
            }
        }
        Elementwise::Softcap { cap } => cap * (x[0][i] / cap).tanh(),
        Elementwise::SoftcapGrad { cap } => x[1][i] * (1.0 - (x[0][i] / cap).powi(2)),
        Elementwise::Clamp { least, most } => x[0][i].clamp(*least, *most),
        Elementwise::Standardise => (x[0][i] - x[1][at.column]) * x[2][at.column],
        Elementwise::Silu => Activation::Silu.of(x[0][i]),
        Elementwise::SiluGrad => x[1][i] * Activation::Silu.slope(x[0][i]),
        Elementwise::GluHalves => {
            let a = at.row * at.other + at.column;
            x[0][a] * logistic(x[0][a + at.other / 2])
        }
        Elementwise::AddRow => x[0][i] + x[1][at.column],
        Elementwise::ScaleRow { by } => x[0][i] * by * x[1][at.column % at.other],
        Elementwise::GeluMulSlice { .. } => gelu(x[0][i]) * x[1][at.in_slice()],
        Elementwise::MulSlice { .. } => x[0][i] * x[1][at.in_slice()],
        Elementwise::PlaceSlice { .. } => {
            let inside = at.column.checked_sub(at.offset).filter(|column| *column < at.other);
            inside.map_or(0.0, |column| x[0][at.row * at.other + column])
        }
    }
}

impl Activation {
    /// `y = f(gate) · up`
    fn gated(self, gate: &[f32], up: &[f32], y: &mut [f32]) {
        match self {
            Self::Gelu => gelu_mul(gate, up, y),
            Self::Silu => silu_mul(gate, up, y),
        }
    }

    fn of(self, z: f32) -> f32 {
        match self {
            Self::Gelu => gelu(z),
            Self::Silu => z * logistic(z),
        }
    }

    fn slope(self, z: f32) -> f32 {
        match self {
            Self::Gelu => gelu_slope(z),
            Self::Silu => {
                let gate = logistic(z);
                gate * (1.0 + z * (1.0 - gate))
            }
        }
    }
}

fn logistic(z: f32) -> f32 {
    1.0 / (1.0 + (-z).exp())
}

fn gelu(z: f32) -> f32 {
    0.5 * z * (1.0 + inner_tanh(z))
}

fn gelu_slope(z: f32) -> f32 {
    let t = inner_tanh(z);
    // Where tanh is ±1 the second term is zero, but z³ may have overflowed.
    if t.abs() == 1.0 {
        return 0.5 * (1.0 + t);
    }
    let inner_slope = ROOT_2_OVER_PI * (1.0 + 3.0 * CUBIC * z * z);
    0.5 * (1.0 + t) + 0.5 * z * (1.0 - t * t) * inner_slope
}

fn inner_tanh(z: f32) -> f32 {
    (ROOT_2_OVER_PI * (z + CUBIC * z * z * z)).tanh()
}
