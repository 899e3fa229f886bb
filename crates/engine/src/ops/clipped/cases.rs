use rullama_gguf::DType;

use super::{ClippedStart, Limits};
use crate::{
    graph::{Graph, Member, Type},
    ops::Branch,
    suite::{Case, Tolerance},
};

const EPS: f32 = 1e-6;
/// Limits that some numbers of the cases are beyond.
const TAKES: Limits = Limits { least: -0.75, most: 0.5 };

/// What begins a case.
#[derive(Debug, Clone, Copy)]
enum Begins {
    Rows,
    Norm,
    Branch { scaled: bool },
    Geglu,
    Gated,
    Silu,
}

pub(crate) fn cases() -> Vec<Case> {
    use Begins::{Branch, Gated, Geglu, Norm, Rows, Silu};
    let mut cases = Vec::new();
    for (begins, dtype, [t, width], rows) in [
        // Few rows, and such that cannot be read by fours, are made by other operations.
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
        // Enough of both for matrix units of bytes, with rows and columns behind the last block.
        (Norm, DType::F16, [1029, 96], &[200, 234]),
        (Gated, DType::BF16, [2043, 32], &[133]),
    ] {
        cases.push(case(begins, dtype, [t, width], rows));
    }
    for (begins, [t, width], rows) in [
        (Branch { scaled: false }, [2520, 768], &[768, 768, 768][..]),
        (Branch { scaled: false }, [2520, 768], &[3072, 3072]),
        (Geglu, [2520, 3072], &[768]),
        (Rows, [2520, 768], &[768]),
    ] {
        cases.push(case(begins, DType::F16, [t, width], rows).bench());
    }
    cases
}

fn case(begins: Begins, dtype: DType, [t, width]: [usize; 2], rows: &'static [usize]) -> Case {
    let build = move |g: &mut Graph| {
        let start = start(begins, [t, width], g);
        let member = |(i, rows): (usize, &usize)| Member::new(format!("w{i}"), *rows);
        let members: Vec<Member> = rows.iter().enumerate().map(member).collect();
        let weight = match rows {
            [one] => g.weight("w", Type::weight(dtype, [*one, width])),
            _ => g.weight_rows(&members, dtype, width),
        };
        // None, some, other limits.
        let limits = |i: usize| match i {
            0 => Limits { least: -1.0, most: 0.25 },
            1 => Limits::NONE,
            _ => Limits { least: f32::NEG_INFINITY, most: 0.5 },
        };
        let gives: Vec<(usize, Limits)> =
            rows.iter().enumerate().map(|(i, rows)| (*rows, limits(i))).collect();
        let (h1, y) = g.clipped(&start, weight, TAKES, &gives);
        h1.into_iter().chain([y]).collect()
    };
    let name = format!("{} {t}x{width} to {rows:?}, {begins:?}", dtype.name());
    Case::new("clipped", name, build).tolerance(Tolerance::EXPONENTIAL.terms(width))
}

fn start(begins: Begins, [t, width]: [usize; 2], g: &mut Graph) -> ClippedStart {
    let norm = |name: &str, g: &mut Graph| g.weight(name, Type::weight(DType::F32, [width]));
    let h = match begins {
        Begins::Geglu => g.input("x", Type::f32([t, 2 * width])),
        _ => g.input("x", Type::f32([t, width])),
    };
    match begins {
        Begins::Rows => ClippedStart::Rows(h),
        Begins::Geglu => ClippedStart::Geglu(h),
        Begins::Gated => ClippedStart::Gated(h, g.input("b", Type::f32([t, width]))),
        Begins::Silu => ClippedStart::Silu(h),
        Begins::Norm => ClippedStart::Norm { h, weight: norm("norm", g), eps: EPS },
        Begins::Branch { scaled } => {
            let branch = Branch {
                residual: h,
                branch: g.input("a", Type::f32([t, width])),
                weight: norm("norm", g),
                scale: scaled.then(|| g.weight("s", Type::weight(DType::F32, [1]))),
                low: None,
                ahead: 0,
            };
            ClippedStart::Branch { branch, next: norm("next", g), eps: EPS }
        }
    }
}
