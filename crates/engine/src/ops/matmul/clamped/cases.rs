use rullama_gguf::DType;

use super::{Clamp, ClampedPrologue, Stacked};
use crate::{
    graph::{Graph, Member, Type},
    ops::Branch,
    suite::{Case, Tolerance},
};

const EPS: f32 = 1e-6;
/// Clamps that some values of the cases exceed.
const INPUTS: Clamp = Clamp { least: -0.75, most: 0.5 };
const OTHERS: Clamp = Clamp { least: -0.25, most: 1.0 };

/// Whether the tensors of a case share their input clamp.
#[derive(Debug, Clone, Copy)]
enum InputClamps {
    Shared,
    /// Two clamps in turn.
    Alternating,
    /// A different clamp for each of three tensors.
    AllDifferent,
}

/// The prologue of a case.
#[derive(Debug, Clone, Copy)]
enum Prologues {
    Rows,
    Norm,
    Branch { scaled: bool },
    Geglu,
    Gated,
    Silu,
}

impl InputClamps {
    /// The input clamp of a tensor.
    fn clamp(self, tensor: usize) -> Clamp {
        match (self, tensor) {
            (Self::Shared, _) | (_, 0) | (Self::Alternating, 2) => INPUTS,
            (Self::Alternating, _) | (Self::AllDifferent, 1) => OTHERS,
            (Self::AllDifferent, _) => Clamp::NONE,
        }
    }
}

pub(crate) fn cases() -> Vec<Case> {
    use InputClamps::{AllDifferent, Alternating, Shared};
    use Prologues::{Branch, Gated, Geglu, Norm, Rows, Silu};
    let mut cases = Vec::new();
    for (prologue, dtype, [t, width], rows) in [
        // Few rows, and rows that cannot be read as vec4s, take the unfused operations.
        (Rows, DType::F32, [3, 17], &[5][..]),
        (Norm, DType::F16, [12, 18], &[8, 4]),
        (Rows, DType::F16, [17, 96], &[67]),
        (Rows, DType::Q8_0, [33, 64], &[32, 32, 32]),
        (Norm, DType::F16, [21, 100], &[40, 28, 12]),
        (Branch { scaled: false }, DType::F16, [19, 192], &[32, 64]),
        (Branch { scaled: true }, DType::BF16, [10, 64], &[16]),
        (Branch { scaled: true }, DType::Q4_0, [18, 96], &[20, 20]),
        (Geglu, DType::F16, [40, 96], &[33]),
        (Gated, DType::F16, [18, 64], &[36]),
        (Silu, DType::F32, [16, 68], &[24]),
        // Enough rows and columns for int8 matrix units, not multiples of a block.
        (Norm, DType::F16, [1029, 96], &[200, 234]),
        (Gated, DType::BF16, [2043, 32], &[133]),
    ] {
        cases.push(case(prologue, Shared, dtype, [t, width], rows));
    }
    for (prologue, inputs, dtype, [t, width], rows) in [
        (Norm, Alternating, DType::F16, [21, 96], &[128, 256, 128][..]),
        (Branch { scaled: true }, AllDifferent, DType::F16, [37, 64], &[128, 128, 128]),
        (Rows, Alternating, DType::Q8_0, [33, 64], &[128, 70]),
        (Norm, AllDifferent, DType::F16, [1029, 32], &[128, 256, 133]),
        // Rows that do not fill whole tiles, or are few, take the unfused operations.
        (Branch { scaled: false }, AllDifferent, DType::F16, [19, 64], &[40, 28, 12]),
        (Norm, Alternating, DType::F16, [5, 64], &[128, 128]),
    ] {
        cases.push(case(prologue, inputs, dtype, [t, width], rows));
    }
    for (prologue, inputs, [t, width], rows) in [
        (Branch { scaled: false }, Shared, [2520, 768], &[768, 768, 768][..]),
        (Branch { scaled: false }, AllDifferent, [2520, 768], &[768, 768, 768]),
        (Branch { scaled: false }, Shared, [2520, 768], &[3072, 3072]),
        (Branch { scaled: false }, Alternating, [2520, 768], &[3072, 3072]),
        (Geglu, Shared, [2520, 3072], &[768]),
        (Rows, Shared, [2520, 768], &[768]),
    ] {
        cases.push(case(prologue, inputs, DType::F16, [t, width], rows).bench());
    }
    cases
}

fn case(
    prologue: Prologues,
    inputs: InputClamps,
    dtype: DType,
    [t, width]: [usize; 2],
    rows: &'static [usize],
) -> Case {
    let build = move |g: &mut Graph| {
        let prologue_of = prologue_of(prologue, [t, width], g);
        let member = |(i, rows): (usize, &usize)| Member::new(format!("w{i}"), *rows);
        let members: Vec<Member> = rows.iter().enumerate().map(member).collect();
        let weight = match rows {
            [one] => g.weight("w", Type::weight(dtype, [*one, width])),
            _ => g.weight_rows(&members, dtype, width),
        };
        // Both bounds, none, the upper one.
        let clamp = |i: usize| match i {
            0 => Clamp { least: -1.0, most: 0.25 },
            1 => Clamp::NONE,
            _ => Clamp { least: f32::NEG_INFINITY, most: 0.5 },
        };
        let tensor = |(i, rows): (usize, &usize)| Stacked {
            rows: *rows,
            input: inputs.clamp(i),
            output: clamp(i),
        };
        let stacked: Vec<Stacked> = rows.iter().enumerate().map(tensor).collect();
        let (h1, y) = g.clamped_linear(&prologue_of, weight, &stacked);
        h1.into_iter().chain([y]).collect()
    };
    let name = match inputs {
        InputClamps::Shared => format!("{} {t}x{width} to {rows:?}, {prologue:?}", dtype.name()),
        _ => format!("{} {t}x{width} to {rows:?}, {prologue:?}, {inputs:?}", dtype.name()),
    };
    Case::new("clamped_linear", name, build).tolerance(Tolerance::EXPONENTIAL.terms(width))
}

fn prologue_of(prologue: Prologues, [t, width]: [usize; 2], g: &mut Graph) -> ClampedPrologue {
    let norm = |name: &str, g: &mut Graph| g.weight(name, Type::weight(DType::F32, [width]));
    let h = match prologue {
        Prologues::Geglu => g.input("x", Type::f32([t, 2 * width])),
        _ => g.input("x", Type::f32([t, width])),
    };
    match prologue {
        Prologues::Rows => ClampedPrologue::Rows(h),
        Prologues::Geglu => ClampedPrologue::Geglu(h),
        Prologues::Gated => ClampedPrologue::Gated(h, g.input("b", Type::f32([t, width]))),
        Prologues::Silu => ClampedPrologue::Silu(h),
        Prologues::Norm => ClampedPrologue::Norm { h, weight: norm("norm", g), eps: EPS },
        Prologues::Branch { scaled } => {
            let branch = Branch {
                residual: h,
                branch: g.input("a", Type::f32([t, width])),
                weight: norm("norm", g),
                post_norm: true,
                scale: scaled.then(|| g.weight("s", Type::weight(DType::F32, [1]))),
                lora_b: None,
                folded: 0,
            };
            ClampedPrologue::ResidualAdd { branch, next: norm("next", g), eps: EPS }
        }
    }
}
