mod batch_invariant;
mod experts;
mod handoff;
mod lora;

use rullama_gguf::DType;

use crate::{
    graph::{Graph, Member, Type, Value},
    ops::{Branch, Epilogue, Prologue},
    suite::{Case, Tolerance, random_bits},
};

pub(super) const EPS: f32 = 1e-6;

/// What comes before and after, without values.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Front {
    Rows,
    Norm,
    Branch {
        scaled: bool,
        next: bool,
    },
    /// An adapter of this rank adds to the branch.
    Lora {
        rank: usize,
        next: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Back {
    Plain,
    Geglu,
    GeluMul,
    Softcap,
}

const FRONTS: [Front; 6] = [
    Front::Rows,
    Front::Norm,
    Front::Branch { scaled: false, next: false },
    Front::Branch { scaled: true, next: false },
    Front::Branch { scaled: false, next: true },
    Front::Branch { scaled: true, next: true },
];

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for front in FRONTS {
        for back in [Back::Plain, Back::Geglu, Back::GeluMul, Back::Softcap] {
            // One dispatch, few columns, tiles; rows that are no multiple of four columns; slabs on the floor.
            for (dtype, t, rows, width) in [
                (DType::Q8_0, 1, 40, 96),
                (DType::F16, 1, 8, 17),
                (DType::Q4_0, 3, 8, 64),
                (DType::F32, 9, 8, 32),
            ] {
                cases.push(fused_linear(front, back, dtype, [t, rows, width]));
            }
            cases.push(fused_linear(front, back, DType::F32, [2, 8, 5]).gradient());
        }
    }
    let branch = Front::Branch { scaled: true, next: true };
    for (front, back, dtype, rows, width) in [
        // Rows for teams of all kinds, and rows that do not fit the memory of a small workgroup.
        (Front::Rows, Back::Geglu, DType::Q4_0, 33_000, 64),
        (Front::Rows, Back::Geglu, DType::Q4_0, 16_408, 64),
        (Front::Norm, Back::Plain, DType::Q4_0, 33_001, 64),
        (branch, Back::Geglu, DType::Q8_0, 8, 4096),
        (Front::Branch { scaled: false, next: false }, Back::GeluMul, DType::Q8_0, 257, 256),
    ] {
        cases.push(fused_linear(front, back, dtype, [1, rows, width]));
    }
    // Rows enough for teams that take pairs of units.
    for dtype in [DType::Q4_K, DType::Q5_K] {
        let case = fused_linear(Front::Norm, Back::Plain, dtype, [1, 261, 768]);
        cases.push(case.given("w", random_bits(dtype, [261, 768])));
    }
    // And rows enough only if teams take fewer at a time.
    let half = || random_bits(DType::Q4_K, [12, 512]);
    let case = fused_linear(branch, Back::Geglu, DType::Q4_K, [1, 24, 512]);
    cases.push(case.given("gate", half()).given("up", half()));
    for dtype in [DType::Q4_K, DType::Q6_K, DType::Q5_K, DType::Q2_K, DType::Q3_K] {
        let case = fused_linear(branch, Back::Geglu, dtype, [1, 8, 1536]);
        cases.push(
            case.given("gate", random_bits(dtype, [4, 1536]))
                .given("up", random_bits(dtype, [4, 1536])),
        );
    }
    for dtype in [DType::Q4_K, DType::Q6_K, DType::Q3_K, DType::Q5_0] {
        cases.push(there_and_back(dtype, [1, 32, 512]));
    }
    cases.extend(batch_invariant::cases());
    cases.extend(experts::cases());
    cases.extend(handoff::cases());
    cases.extend(lora::cases());
    cases.extend(benches());
    cases
}

/// A layer of Gemma 4 E2B, token by token: queries, keys and values; gate and up; the gate of the layer's own inputs.
fn benches() -> Vec<Case> {
    let (next, last) =
        (Front::Branch { scaled: true, next: true }, Front::Branch { scaled: false, next: false });
    let shapes = [
        (next, Back::Plain, DType::Q4_K, 2560, 1536),
        (Front::Rows, Back::Geglu, DType::Q4_K, 12_288, 1536),
        (next, Back::Geglu, DType::Q4_K, 12_288, 1536),
        (next, Back::Geglu, DType::Q4_K, 24_576, 1536),
        (last, Back::GeluMul, DType::Q4_K, 256, 1536),
        (last, Back::GeluMul, DType::F32, 256, 1536),
    ];
    let bench = |(front, back, dtype, rows, width)| {
        fused_linear(front, back, dtype, [1, rows, width]).bench()
    };
    shapes.map(bench).into_iter().chain([6144, 12_288].map(chain)).collect()
}

/// The feed-forward part of layers one after the other, as it is timed.
fn chain(inner: usize) -> Case {
    const LINKS: usize = 16;
    const WIDTH: usize = 1536;
    let build = move |g: &mut Graph| feed_forward(g, LINKS, DType::Q4_K, [1, WIDTH, inner]);
    Case::new("fused_linear", format!("Q4_K gated {WIDTH} to {inner} and back, in a chain"), build)
        .chain(LINKS)
}

/// One of them: what is made lies between two linear layers in the order of the second one's weight.
fn there_and_back(dtype: DType, sizes: [usize; 3]) -> Case {
    let [t, width, inner] = sizes;
    let build = move |g: &mut Graph| feed_forward(g, 1, dtype, sizes);
    let name = format!("{t} x {} gated {width} to {inner} and back", dtype.name());
    let case = Case::new("fused_linear", name, build).tolerance(tolerance(width * inner));
    let down = random_bits(dtype, [width, inner]);
    if dtype.block_elements() > 32 { case.given("down0", down) } else { case }
}

/// After residual and norms, gate and up with GeGLU, and back, so many times.
fn feed_forward(
    g: &mut Graph,
    links: usize,
    dtype: DType,
    [t, width, inner]: [usize; 3],
) -> Vec<Value> {
    let rows = Type::f32([t, width]);
    let (mut h, mut a) = (g.input("h", rows.clone()), g.input("a", rows));
    for i in 0..links {
        let norm = Type::weight(DType::F32, [width]);
        let weight = g.weight(format!("post{i}"), norm.clone());
        let next = Some(g.weight(format!("next{i}"), norm));
        let branch =
            Branch { residual: h, branch: a, weight, scale: None, lora_b: None, folded: 0 };
        let half = |name: &str| Member::new(format!("{name}{i}"), inner);
        let gates = if links > 1 { dtype } else { DType::Q8_0 };
        let gate_up = g.weight_rows(&[half("gate"), half("up")], gates, width);
        let prologue = Prologue::ResidualAdd { branch, next, eps: EPS };
        let (h1, both) = g.fused_linear(&prologue, gate_up, &Epilogue::Geglu);
        let down = g.weight(format!("down{i}"), Type::weight(dtype, [width, inner]));
        (h, a) = (h1.unwrap_or(h), g.linear(both, down));
    }
    vec![h, a]
}

fn fused_linear(front: Front, back: Back, dtype: DType, [t, rows, width]: [usize; 3]) -> Case {
    let build = move |g: &mut Graph| {
        let prologue = prologue_of(g, front, t, width);
        let (weight, epilogue) = weight(g, back, dtype, [t, rows, width]);
        let (h1, y) = g.fused_linear(&prologue, weight, &epilogue);
        std::iter::once(y).chain(h1).collect::<Vec<Value>>()
    };
    let name = format!("{front:?} {} {t}x{width} to {rows} {back:?}", dtype.name());
    Case::new("fused_linear", name, build).tolerance(tolerance(width))
}

/// GELU falls back to small numbers where its argument is negative; those are differences.
fn tolerance(width: usize) -> Tolerance {
    Tolerance::EXPONENTIAL.terms(width).cancelling((width as f32).sqrt())
}

fn weight(
    g: &mut Graph,
    back: Back,
    dtype: DType,
    [t, rows, width]: [usize; 3],
) -> (Value, Epilogue) {
    match back {
        Back::Geglu => {
            let half = |name: &str| Member::new(name, rows / 2);
            (g.weight_rows(&[half("gate"), half("up")], dtype, width), Epilogue::Geglu)
        }
        Back::Plain => (g.weight("w", Type::weight(dtype, [rows, width])), Epilogue::Plain),
        Back::Softcap => {
            (g.weight("w", Type::weight(dtype, [rows, width])), Epilogue::Softcap { cap: 30.0 })
        }
        Back::GeluMul => {
            let long = g.input("long", Type::f32([t, 3 * rows]));
            let weight = g.weight("w", Type::weight(dtype, [rows, width]));
            (weight, Epilogue::GeluMul { long, slice: 1 })
        }
    }
}

fn prologue_of(g: &mut Graph, front: Front, t: usize, width: usize) -> Prologue {
    let rows = Type::f32([t, width]);
    let norm = |g: &mut Graph, name: &str| g.weight(name, Type::weight(DType::F32, [width]));
    match front {
        Front::Rows => Prologue::Rows(g.input("x", rows)),
        Front::Norm => Prologue::Norm { h: g.input("h", rows), weight: norm(g, "next"), eps: EPS },
        Front::Branch { scaled, next } => Prologue::ResidualAdd {
            branch: Branch {
                residual: g.input("h", rows.clone()),
                branch: g.input("a", rows),
                weight: norm(g, "post"),
                scale: scaled.then(|| g.weight("s", Type::weight(DType::F32, [1]))),
                lora_b: None,
                folded: 0,
            },
            next: next.then(|| norm(g, "next")),
            eps: EPS,
        },
        Front::Lora { rank, next } => Prologue::ResidualAdd {
            branch: Branch {
                residual: g.input("h", rows),
                branch: g.input("a", Type::f32([t, width + rank])),
                weight: norm(g, "post"),
                scale: Some(g.weight("s", Type::weight(DType::F32, [1]))),
                lora_b: Some(g.weight("branch_b", Type::weight(DType::F16, [rank, width]))),
                folded: 0,
            },
            next: next.then(|| norm(g, "next")),
            eps: EPS,
        },
    }
}
