mod batch_invariant;
mod experts;
mod f16_columns;
mod handoff;
mod lora;
mod slots;

use rullama_gguf::DType;

use crate::{
    graph::{Graph, Member, Type, Value},
    ops::{Activation, Branch, Epilogue, Prologue},
    suite::{Case, Tolerance, random_bits},
};

pub(super) const EPS: f32 = 1e-6;

/// The prologue of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
enum PrologueKind {
    Rows,
    Norm,
    Branch {
        scaled: bool,
        next: bool,
    },
    /// A residual add without a norm after the branch, then the next norm.
    PlainBranch,
    /// A LoRA of this rank is added to the branch.
    Lora {
        rank: usize,
        next: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum EpilogueKind {
    Plain,
    Geglu,
    Swiglu,
    GeluMul,
    Softcap,
}

const PROLOGUES: [PrologueKind; 7] = [
    PrologueKind::Rows,
    PrologueKind::Norm,
    PrologueKind::Branch { scaled: false, next: false },
    PrologueKind::Branch { scaled: true, next: false },
    PrologueKind::Branch { scaled: false, next: true },
    PrologueKind::Branch { scaled: true, next: true },
    PrologueKind::PlainBranch,
];

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for prologue_kind in PROLOGUES {
        for epilogue_kind in
            [EpilogueKind::Plain, EpilogueKind::Geglu, EpilogueKind::GeluMul, EpilogueKind::Softcap]
        {
            // One dispatch, few columns, tiles; widths that are not multiples of four; several slabs on the floor device.
            for (dtype, t, rows, width) in [
                (DType::Q8_0, 1, 40, 96),
                (DType::F16, 1, 8, 17),
                (DType::Q4_0, 3, 8, 64),
                (DType::F32, 9, 8, 32),
            ] {
                cases.push(fused_linear(prologue_kind, epilogue_kind, dtype, [t, rows, width]));
            }
            cases
                .push(fused_linear(prologue_kind, epilogue_kind, DType::F32, [2, 8, 5]).gradient());
        }
    }
    let branch = PrologueKind::Branch { scaled: true, next: true };
    for (prologue_kind, epilogue_kind, dtype, rows, width) in [
        // Rows for teams of all kinds, and rows that do not fit the memory of a small workgroup.
        (PrologueKind::Rows, EpilogueKind::Geglu, DType::Q4_0, 33_000, 64),
        (PrologueKind::Rows, EpilogueKind::Geglu, DType::Q4_0, 16_408, 64),
        (PrologueKind::Norm, EpilogueKind::Plain, DType::Q4_0, 33_001, 64),
        (branch, EpilogueKind::Geglu, DType::Q8_0, 8, 4096),
        (PrologueKind::PlainBranch, EpilogueKind::Swiglu, DType::Q8_0, 8, 4096),
        (PrologueKind::Norm, EpilogueKind::Swiglu, DType::Q4_1, 72, 96),
        (PrologueKind::Rows, EpilogueKind::Swiglu, DType::Q8_0, 8, 576),
        (
            PrologueKind::Branch { scaled: false, next: false },
            EpilogueKind::GeluMul,
            DType::Q8_0,
            257,
            256,
        ),
    ] {
        cases.push(fused_linear(prologue_kind, epilogue_kind, dtype, [1, rows, width]));
    }
    // Enough rows for teams that take pairs of units.
    for dtype in [DType::Q4_K, DType::Q5_K] {
        let case = fused_linear(PrologueKind::Norm, EpilogueKind::Plain, dtype, [1, 261, 768]);
        cases.push(case.given("w", random_bits(dtype, [261, 768])));
    }
    // Enough rows only if teams take fewer at a time.
    let half = || random_bits(DType::Q4_K, [12, 512]);
    let case = fused_linear(branch, EpilogueKind::Geglu, DType::Q4_K, [1, 24, 512]);
    cases.push(case.given("gate", half()).given("up", half()));
    for dtype in [DType::Q4_K, DType::Q6_K, DType::Q5_K, DType::Q2_K, DType::Q3_K] {
        let case = fused_linear(branch, EpilogueKind::Geglu, dtype, [1, 8, 1536]);
        cases.push(
            case.given("gate", random_bits(dtype, [4, 1536]))
                .given("up", random_bits(dtype, [4, 1536])),
        );
    }
    for dtype in [DType::Q4_K, DType::Q6_K, DType::Q3_K, DType::Q5_0] {
        cases.push(up_and_down(dtype, [1, 32, 512]));
    }
    cases.extend(batch_invariant::cases());
    cases.extend(experts::cases());
    cases.extend(f16_columns::cases());
    cases.extend(handoff::cases());
    cases.extend(lora::cases());
    cases.extend(slots::cases());
    cases.extend(benches());
    cases
}

/// A layer of Gemma 4 E2B in decoding: queries, keys and values; gate and up; the gate of the per-layer inputs.
fn benches() -> Vec<Case> {
    let (next, last) = (
        PrologueKind::Branch { scaled: true, next: true },
        PrologueKind::Branch { scaled: false, next: false },
    );
    let shapes = [
        (next, EpilogueKind::Plain, DType::Q4_K, 2560, 1536),
        (PrologueKind::Rows, EpilogueKind::Geglu, DType::Q4_K, 12_288, 1536),
        (next, EpilogueKind::Geglu, DType::Q4_K, 12_288, 1536),
        (next, EpilogueKind::Geglu, DType::Q4_K, 24_576, 1536),
        (last, EpilogueKind::GeluMul, DType::Q4_K, 256, 1536),
        (last, EpilogueKind::GeluMul, DType::F32, 256, 1536),
    ];
    let bench = |(prologue_kind, epilogue_kind, dtype, rows, width)| {
        fused_linear(prologue_kind, epilogue_kind, dtype, [1, rows, width]).bench()
    };
    shapes.map(bench).into_iter().chain([6144, 12_288].map(chain)).collect()
}

/// The feed-forward parts of consecutive layers, for timing.
fn chain(inner: usize) -> Case {
    const LINKS: usize = 16;
    const WIDTH: usize = 1536;
    let build = move |g: &mut Graph| feed_forward(g, LINKS, DType::Q4_K, [1, WIDTH, inner]);
    Case::new("fused_linear", format!("Q4_K gated {WIDTH} to {inner} and back, in a chain"), build)
        .chain(LINKS)
}

/// One feed-forward part: activations between the two linear layers are in the layout of the second one's weight.
fn up_and_down(dtype: DType, sizes: [usize; 3]) -> Case {
    let [t, width, inner] = sizes;
    let build = move |g: &mut Graph| feed_forward(g, 1, dtype, sizes);
    let name = format!("{t} x {} gated {width} to {inner} and back", dtype.name());
    let case = Case::new("fused_linear", name, build).tolerance(tolerance(width * inner));
    with_bits(case, "down0", dtype, [width, inner])
}

/// `links` feed-forward parts: residual add and norms, gate and up with GeGLU, down.
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
        let branch = Branch {
            residual: h,
            branch: a,
            weight,
            post_norm: true,
            scale: None,
            lora_b: None,
            folded: 0,
        };
        let half = |name: &str| Member::new(format!("{name}{i}"), inner);
        let gates = if links > 1 { dtype } else { DType::Q8_0 };
        let gate_up = g.weight_rows(&[half("gate"), half("up")], gates, width);
        let prologue = Prologue::ResidualAdd { branch, next, eps: EPS };
        let (h1, both) = g.fused_linear(&prologue, gate_up, &Epilogue::GEGLU);
        let down = g.weight(format!("down{i}"), Type::weight(dtype, [width, inner]));
        (h, a) = (h1.unwrap_or(h), g.linear(both, down));
    }
    vec![h, a]
}

fn fused_linear(
    prologue_kind: PrologueKind,
    epilogue_kind: EpilogueKind,
    dtype: DType,
    [t, rows, width]: [usize; 3],
) -> Case {
    let build = move |g: &mut Graph| {
        let prologue = prologue_of(g, prologue_kind, t, width);
        let (weight, epilogue) = weight(g, epilogue_kind, dtype, [t, rows, width]);
        let (h1, y) = g.fused_linear(&prologue, weight, &epilogue);
        std::iter::once(y).chain(h1).collect::<Vec<Value>>()
    };
    let name =
        format!("{prologue_kind:?} {} {t}x{width} to {rows} {epilogue_kind:?}", dtype.name());
    Case::new("fused_linear", name, build).tolerance(tolerance(width))
}

/// GELU has small results for negative arguments, which are differences of larger values.
fn tolerance(width: usize) -> Tolerance {
    Tolerance::EXPONENTIAL.terms(width).cancelling((width as f32).sqrt())
}

/// Random blocks for a weight of superblocks, whose scales and minimums vary more than those of quantised noise.
fn with_bits(case: Case, weight: &str, dtype: DType, shape: [usize; 2]) -> Case {
    match dtype.block_elements() > 32 {
        true => case.given(weight, random_bits(dtype, shape)),
        false => case,
    }
}

fn weight(
    g: &mut Graph,
    epilogue_kind: EpilogueKind,
    dtype: DType,
    [t, rows, width]: [usize; 3],
) -> (Value, Epilogue) {
    match epilogue_kind {
        EpilogueKind::Geglu | EpilogueKind::Swiglu => {
            let half = |name: &str| Member::new(name, rows / 2);
            let activation = if epilogue_kind == EpilogueKind::Geglu {
                Activation::Gelu
            } else {
                Activation::Silu
            };
            let both = g.weight_rows(&[half("gate"), half("up")], dtype, width);
            (both, Epilogue::Gated(activation))
        }
        EpilogueKind::Plain => (g.weight("w", Type::weight(dtype, [rows, width])), Epilogue::Plain),
        EpilogueKind::Softcap => {
            (g.weight("w", Type::weight(dtype, [rows, width])), Epilogue::Softcap { cap: 30.0 })
        }
        EpilogueKind::GeluMul => {
            let long = g.input("long", Type::f32([t, 3 * rows]));
            let weight = g.weight("w", Type::weight(dtype, [rows, width]));
            (weight, Epilogue::GeluMul { long, slice: 1 })
        }
    }
}

fn prologue_of(g: &mut Graph, prologue_kind: PrologueKind, t: usize, width: usize) -> Prologue {
    let rows = Type::f32([t, width]);
    let norm = |g: &mut Graph, name: &str| g.weight(name, Type::weight(DType::F32, [width]));
    match prologue_kind {
        PrologueKind::Rows => Prologue::Rows(g.input("x", rows)),
        PrologueKind::Norm => {
            Prologue::Norm { h: g.input("h", rows), weight: norm(g, "next"), eps: EPS }
        }
        PrologueKind::Branch { scaled, next } => Prologue::ResidualAdd {
            branch: Branch {
                residual: g.input("h", rows.clone()),
                branch: g.input("a", rows),
                weight: norm(g, "post"),
                post_norm: true,
                scale: scaled.then(|| g.weight("s", Type::weight(DType::F32, [1]))),
                lora_b: None,
                folded: 0,
            },
            next: next.then(|| norm(g, "next")),
            eps: EPS,
        },
        PrologueKind::PlainBranch => {
            let next = norm(g, "next");
            Prologue::ResidualAdd {
                branch: Branch {
                    residual: g.input("h", rows.clone()),
                    branch: g.input("a", rows),
                    weight: next,
                    post_norm: false,
                    scale: None,
                    lora_b: None,
                    folded: 0,
                },
                next: Some(next),
                eps: EPS,
            }
        }
        PrologueKind::Lora { rank, next } => Prologue::ResidualAdd {
            branch: Branch {
                residual: g.input("h", rows),
                branch: g.input("a", Type::f32([t, width + rank])),
                weight: norm(g, "post"),
                post_norm: true,
                scale: Some(g.weight("s", Type::weight(DType::F32, [1]))),
                lora_b: Some(g.weight("branch_b", Type::weight(DType::F16, [rank, width]))),
                folded: 0,
            },
            next: next.then(|| norm(g, "next")),
            eps: EPS,
        },
    }
}
