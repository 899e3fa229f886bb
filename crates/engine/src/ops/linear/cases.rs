use rullama_gguf::DType;

use crate::{
    graph::{Graph, Type},
    suite::{Case, Tolerance},
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (t, rows, width) in [(1, 1, 1), (1, 3, 17), (3, 17, 257), (8, 5, 64), (1, 257, 512)] {
        cases.push(product(DType::F32, t, rows, width));
    }
    for dtype in [DType::Q4_K] {
        for (t, rows, width) in [(1, 17, 512), (2, 257, 256), (8, 3, 1536)] {
            cases.push(product(dtype, t, rows, width));
        }
    }
    cases
}

fn product(dtype: DType, t: usize, rows: usize, width: usize) -> Case {
    let build = move |g: &mut Graph| {
        let x = g.input("x", Type::f32([t, width]));
        let weight = g.weight("w", Type::weight(dtype, [rows, width]));
        vec![g.linear(x, weight)]
    };
    Case::new("linear", format!("{} {t}x{width} to {rows}", dtype.name()), build)
        .tolerance(Tolerance::ARITHMETIC.terms(width))
}
