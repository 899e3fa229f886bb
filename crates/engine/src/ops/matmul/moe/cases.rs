use std::fmt;

use rullama_gguf::DType;

use crate::{
    cpu::Data,
    graph::{Graph, Type, Value},
    ops::Routes,
    suite::{Case, Tolerance},
};

/// Formats with blocks of up to 256 weights.
const FORMATS: &[DType] = &[DType::Q4_K, DType::Q5_0, DType::Q8_0];

/// Tokens, experts per token, experts, rows, width.
#[derive(Debug, Clone, Copy)]
struct Shape(usize, usize, usize, usize, usize);

/// The variant of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Form {
    grouped: bool,
    per_slot: bool,
    backward: bool,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [
            (self.grouped, " grouped"),
            (self.per_slot, " per slot"),
            (self.backward, " backward"),
        ];
        words.iter().filter(|(on, _)| *on).try_for_each(|(_, word)| f.write_str(word))
    }
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let f32s = [Shape(1, 1, 1, 1, 1), Shape(3, 2, 5, 3, 17), Shape(2, 4, 7, 70, 257)];
    let blocks = [Shape(1, 2, 3, 17, 512), Shape(5, 2, 4, 67, 256), Shape(40, 3, 4, 5, 256)];
    for form in forms() {
        cases.extend(f32s.iter().map(|shape| case(DType::F32, *shape, form)));
        for dtype in FORMATS {
            cases.extend(blocks.iter().map(|shape| case(*dtype, *shape, form)));
        }
        // More slots of one expert than a tile has, and tokens past the count.
        cases.push(case(DType::F32, Shape(70, 1, 2, 3, 33), form));
        cases.push(case(DType::F32, Shape(70, 2, 3, 65, 3), form).step(0, 30));
        // Sizes of LoRA matrices.
        cases.push(case(DType::F16, Shape(40, 2, 3, 67, 4), form));
        // Enough slots per expert for tiles of 64.
        cases.push(case(DType::Q8_0, Shape(70, 2, 2, 70, 96), form));
    }
    for per_slot in [false, true] {
        let form = Form { grouped: per_slot, per_slot, backward: false };
        cases.push(case(DType::F32, Shape(2, 2, 3, 4, 5), form).gradient());
    }
    cases.extend(benches());
    cases
}

fn forms() -> impl Iterator<Item = Form> {
    (0..6).map(|i| Form { per_slot: i % 2 == 1, grouped: i / 2 == 1, backward: i / 2 == 2 })
}

/// A layer of Gemma 4 26B-A4B.
fn benches() -> Vec<Case> {
    let decode = Form { grouped: false, per_slot: false, backward: false };
    let mut cases = Vec::new();
    for (t, grouped) in [(1, false), (8, false), (64, false), (64, true), (256, true), (512, true)]
    {
        let form = Form { grouped, ..decode };
        cases.push(case(DType::Q4_K, Shape(t, 8, 128, 1408, 2816), form).bench());
        let down = Form { per_slot: true, ..form };
        cases.push(case(DType::Q4_K, Shape(t, 8, 128, 2816, 768), down).bench());
        if grouped {
            cases.push(case(DType::Q5_0, Shape(t, 8, 128, 2816, 704), down).bench());
        }
    }
    cases
}

fn case(dtype: DType, shape: Shape, form: Form) -> Case {
    let Shape(t, k, experts, rows, width) = shape;
    let build = move |g: &mut Graph| {
        let x = match form.per_slot {
            true => g.input("x", Type::f32([t, k, width])),
            false => g.input("x", Type::f32([t, width])),
        };
        let y = apply(g, dtype, shape, form.grouped, x);
        if !form.backward {
            return vec![y];
        }
        let dy = g.input("dy", Type::f32([t, k, rows]));
        vec![crate::graph::backward(g, y, dy, &[x])[0].expect("the output depends on x")]
    };
    let ids = (0..t * k).map(|i| (i * 7919 % 1009 % experts) as u32).collect();
    let terms = if form.backward { rows * k } else { width };
    let name = format!("{} {t}x{width} to {k} of {experts}x{rows}{form}", dtype.name());
    Case::new("linear_experts", name, build)
        .given("ids", Data::U32(ids))
        .step(0, t as u32)
        .tolerance(Tolerance::ARITHMETIC.terms(terms))
}

fn apply(g: &mut Graph, dtype: DType, shape: Shape, grouped: bool, x: Value) -> Value {
    let Shape(t, k, experts, rows, width) = shape;
    let ids = g.input("ids", Type::u32([t, k]));
    let groups = grouped.then(|| g.expert_groups(ids, experts));
    let weight = g.weight("w", Type::weight(dtype, [experts, rows, width]));
    g.linear_experts(x, &Routes { ids, groups }, weight)
}
