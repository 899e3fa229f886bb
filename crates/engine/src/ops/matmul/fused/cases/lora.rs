//! Linear layers with a LoRA pair.

use rullama_gguf::DType;

use super::{EpilogueKind, PROLOGUES, PrologueKind, prologue_of, tolerance, weight};
use crate::{
    graph::{Graph, Type, Value},
    ops::{Branch, FoldedDown, LoraPair, Prologue},
    suite::Case,
};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for prologue_kind in PROLOGUES {
        for epilogue_kind in [EpilogueKind::Plain, EpilogueKind::Geglu, EpilogueKind::GeluMul] {
            let dtypes = [DType::Q4_0, DType::F16];
            cases.push(fused_linear(prologue_kind, epilogue_kind, dtypes, [1, 264, 64, 48]));
        }
        cases.push(
            fused_linear(
                prologue_kind,
                EpilogueKind::Plain,
                [DType::F32, DType::F32],
                [2, 8, 5, 2],
            )
            .gradient(),
        );
    }
    for (prologue_kind, epilogue_kind) in [
        (PrologueKind::Rows, EpilogueKind::Plain),
        (PrologueKind::Norm, EpilogueKind::Geglu),
        (PrologueKind::Branch { scaled: false, next: false }, EpilogueKind::GeluMul),
    ] {
        for (dtype, factors, t, rows, width, rank) in [
            (DType::Q8_0, DType::F32, 1, 40, 96, 4),
            // Several tokens; a rank that is not a multiple of four; a width that is not a multiple of a unit.
            (DType::Q4_0, DType::F16, 3, 8, 64, 8),
            (DType::F16, DType::F32, 1, 8, 32, 3),
            (DType::F32, DType::F32, 1, 8, 17, 4),
        ] {
            cases.push(fused_linear(
                prologue_kind,
                epilogue_kind,
                [dtype, factors],
                [t, rows, width, rank],
            ));
        }
    }
    let branch = PrologueKind::Branch { scaled: true, next: true };
    for (prologue_kind, epilogue_kind, dtype, rows, width, rank) in [
        // All kinds of teams; x as int8 pairs; a down-projection too large for every workgroup to recompute.
        (PrologueKind::Rows, EpilogueKind::Geglu, DType::Q4_0, 33_000, 64, 16),
        (PrologueKind::Norm, EpilogueKind::Plain, DType::Q4_0, 33_001, 64, 16),
        (branch, EpilogueKind::Geglu, DType::Q8_0, 8, 1536, 32),
        (PrologueKind::Rows, EpilogueKind::Plain, DType::Q8_0, 40, 6144, 16),
        (branch, EpilogueKind::Plain, DType::Q8_0, 40, 1536, 128),
    ] {
        cases.push(fused_linear(
            prologue_kind,
            epilogue_kind,
            [dtype, DType::F16],
            [1, rows, width, rank],
        ));
    }
    for (next, epilogue_kind) in
        [(true, EpilogueKind::Plain), (true, EpilogueKind::Geglu), (false, EpilogueKind::GeluMul)]
    {
        // Before a linear layer without a LoRA pair, and before one with its own; several tokens.
        let prologue_kind = |rank| PrologueKind::Lora { rank, next };
        cases.push(super::fused_linear(prologue_kind(12), epilogue_kind, DType::Q8_0, [1, 40, 96]));
        cases.push(super::fused_linear(
            prologue_kind(20),
            epilogue_kind,
            DType::Q8_0,
            [1, 40, 1536],
        ));
        cases.push(super::fused_linear(prologue_kind(4), epilogue_kind, DType::Q8_0, [3, 8, 64]));
        cases.push(fused_linear(
            prologue_kind(8),
            epilogue_kind,
            [DType::Q8_0, DType::F16],
            [1, 40, 96, 4],
        ));
        cases.push(fused_linear(
            prologue_kind(16),
            epilogue_kind,
            [DType::Q8_0, DType::F16],
            [1, 40, 1536, 16],
        ));
    }
    let lora_branch = PrologueKind::Lora { rank: 4, next: true };
    cases.push(
        super::fused_linear(lora_branch, EpilogueKind::Plain, DType::F32, [2, 8, 5]).gradient(),
    );
    for (dtype, factors, sizes) in [
        (DType::Q8_0, DType::F16, [1, 40, 96, 8]),
        (DType::Q8_0, DType::F32, [1, 40, 6144, 4]),
        (DType::Q4_0, DType::F16, [1, 33_000, 64, 16]),
        // Several tokens; a width that is not a multiple of a unit.
        (DType::Q4_0, DType::F16, [3, 8, 64, 8]),
        (DType::F32, DType::F32, [1, 8, 17, 4]),
    ] {
        cases.push(with_down(dtype, factors, sizes));
    }
    cases.push(with_down(DType::F32, DType::F32, [2, 8, 5, 4]).gradient());
    for (dtype, factors, sizes) in [
        (DType::Q8_0, DType::F32, [1, 40, 96, 8]),
        (DType::Q4_0, DType::F16, [1, 40, 6144, 4]),
        // Several tokens; a width that is not a multiple of a unit.
        (DType::Q4_0, DType::F32, [3, 8, 64, 8]),
        (DType::F32, DType::F32, [1, 8, 17, 4]),
    ] {
        cases.push(with_folded_down(dtype, factors, sizes));
    }
    cases.extend([DType::Q4_K, DType::Q6_K].map(after_geglu));
    for (branch_rank, epilogue_kind, rows, width, rank, others) in [
        (0, EpilogueKind::Plain, 40, 96, 8, [0, 0]),
        (8, EpilogueKind::Geglu, 40, 96, 4, [0, 0]),
        // Many rows; a rank larger than a team.
        (0, EpilogueKind::Geglu, 33_000, 64, 16, [0, 0]),
        (16, EpilogueKind::Geglu, 40, 1536, 32, [0, 0]),
        (12, EpilogueKind::Plain, 40, 1536, 96, [0, 0]),
        // Down-projections of several linear layers folded together.
        (0, EpilogueKind::Plain, 40, 96, 8, [4, 0]),
        (0, EpilogueKind::Plain, 40, 1536, 32, [0, 16]),
        (20, EpilogueKind::Plain, 24, 1536, 16, [32, 4]),
    ] {
        cases.push(folded(branch_rank, epilogue_kind, [rows, width, rank], others));
    }
    cases.extend(benches());
    cases
}

/// A linear layer followed by its LoRA down-projection.
fn with_down(dtype: DType, factors: DType, [t, rows, width, rank]: [usize; 4]) -> Case {
    let build = move |g: &mut Graph| {
        let x = g.input("x", Type::f32([t, width]));
        let weight = g.weight("w", Type::weight(dtype, [rows, width]));
        let a = g.weight("low_a", Type::weight(factors, [rank, width]));
        vec![g.linear_with_down(x, weight, a)]
    };
    let (dtype, factors) = (dtype.name(), factors.name());
    let name = format!("{dtype} {t}x{width} to {rows} with {factors} A of rank {rank}");
    Case::new("fused_linear", name, build).tolerance(tolerance(width))
}

/// With the folded down-projection of the residual stream.
fn with_folded_down(dtype: DType, factors: DType, [t, rows, width, rank]: [usize; 4]) -> Case {
    let stream = 3 * width;
    let build = move |g: &mut Graph| {
        let (x, h) = (g.input("x", Type::f32([t, width])), g.input("h", Type::f32([t, stream])));
        let weight = g.weight("w", Type::weight(dtype, [rows, width]));
        let q = g.weight("q", Type::weight(factors, [rank + 4, width]));
        let p = g.weight("p", Type::weight(factors, [rank, stream]));
        vec![g.linear_with_folded_down(x, weight, &FoldedDown { q, h, p })]
    };
    let (dtype, factors) = (dtype.name(), factors.name());
    let name =
        format!("{dtype} {t}x{width} to {rows} with {factors} A of rank {rank}, and of the stream");
    Case::new("fused_linear", name, build).tolerance(tolerance(stream))
}

/// After GeGLU, which stores its output in the layout of this weight.
fn after_geglu(dtype: DType) -> Case {
    let (rows, inner, rank) = (64, 512, 8);
    let build = move |g: &mut Graph| {
        let h = g.input("h", Type::f32([1, rows]));
        let gate_up = g.weight("gate_up", Type::weight(DType::Q8_0, [2 * inner, rows]));
        let x = g.linear_geglu(h, gate_up);
        let weight = g.weight("w", Type::weight(dtype, [rows, inner]));
        let q = g.weight("q", Type::weight(DType::F32, [2 * rank, inner]));
        let p = g.weight("p", Type::weight(DType::F32, [rank, rows]));
        vec![g.linear_with_folded_down(x, weight, &FoldedDown { q, h, p })]
    };
    let name = format!("{} with F32 A of rank {rank} after GeGLU", dtype.name());
    Case::new("fused_linear", name, build).tolerance(tolerance(rows + inner))
}

/// A linear layer whose LoRA A was folded into the preceding dispatch, between those of other layers; here separate operations compute it, as
/// it is defined.
fn folded(
    branch_rank: usize,
    epilogue_kind: EpilogueKind,
    [rows, width, rank]: [usize; 3],
    [after, before]: [usize; 2],
) -> Case {
    let build = move |g: &mut Graph| {
        let row = |g: &mut Graph, name: &str| g.input(name, Type::f32([1, width]));
        let (h, own) = (row(g, "h"), row(g, "a"));
        let norm = |g: &mut Graph, name: &str| g.weight(name, Type::weight(DType::F32, [width]));
        let (post, next) = (norm(g, "post"), norm(g, "next"));
        let scale = Some(g.weight("s", Type::weight(DType::F32, [1])));
        let a = g.weight("low_a", Type::weight(DType::F16, [rank, width]));
        let b = g.weight("low_b", Type::weight(DType::F16, [rows, rank]));
        let (mut whole, mut parts) = (own, vec![own]);
        let transposed = (branch_rank > 0).then(|| {
            let b = g.weight("branch_b", Type::weight(DType::F16, [branch_rank, width]));
            let z = g.input("z", Type::f32([1, branch_rank]));
            let lora = g.linear_t(z, b);
            whole = g.add(own, lora);
            parts.push(z);
            b
        });
        let weighted = g.scale_row(whole, post, 1.0);
        for term in [weighted, h] {
            let term = g.scale_row(term, next, 1.0);
            parts.push(g.linear(term, a));
            let at = parts.len() - 1;
            for (name, rows, at) in [("before", before, at + 1), ("after", after, at)] {
                if rows > 0 {
                    let other = g.weight(name, Type::weight(DType::F16, [rows, width]));
                    parts.insert(at, g.linear(term, other));
                }
            }
        }
        let branch = g.join_columns(&parts);
        let folded = 2 * (after + rank + before);
        let branch = Branch {
            residual: h,
            branch,
            weight: post,
            post_norm: true,
            scale,
            lora_b: transposed,
            folded,
        };
        let prologue = Prologue::ResidualAdd { branch, next: Some(next), eps: super::EPS };
        let (weight, epilogue) = weight(g, epilogue_kind, DType::Q8_0, [1, rows, width]);
        let (h1, y) = g.fused_linear_lora(
            &prologue,
            weight,
            Some(&LoraPair { a, b, folded_row: after, sequences: None }),
            &epilogue,
        );
        std::iter::once(y).chain(h1).collect::<Vec<Value>>()
    };
    let name = format!(
        "1x{width} to {rows} {epilogue_kind:?}, rank {rank} folded between {after} and {before}, after rank {branch_rank}"
    );
    Case::new("fused_linear", name, build).tolerance(tolerance(width + rank))
}

/// The linear layers of a layer of Gemma 4 E2B with rank 16: queries, keys and values; attention output; gate and up; down.
fn benches() -> Vec<Case> {
    let next = PrologueKind::Branch { scaled: true, next: true };
    let lora_branch = PrologueKind::Lora { rank: 16, next: true };
    let dtypes = [DType::Q4_K, DType::F16];
    let others = [
        with_down(DType::Q4_K, DType::F16, [1, 1536, 2048, 16]).bench(),
        with_down(DType::Q4_K, DType::F16, [1, 1536, 12_288, 16]).bench(),
        fused_linear(lora_branch, EpilogueKind::Geglu, dtypes, [1, 24_576, 1536, 32]).bench(),
    ];
    let shapes = [
        (next, EpilogueKind::Plain, 2560, 1536, 48),
        (PrologueKind::Rows, EpilogueKind::Plain, 1536, 2048, 16),
        (next, EpilogueKind::Geglu, 24_576, 1536, 32),
        (PrologueKind::Rows, EpilogueKind::Plain, 1536, 12_288, 16),
    ];
    let bench = |(prologue_kind, epilogue_kind, rows, width, rank)| {
        fused_linear(
            prologue_kind,
            epilogue_kind,
            [DType::Q4_K, DType::F16],
            [1, rows, width, rank],
        )
        .bench()
    };
    shapes.map(bench).into_iter().chain(others).collect()
}

fn fused_linear(
    prologue_kind: PrologueKind,
    epilogue_kind: EpilogueKind,
    [dtype, factors]: [DType; 2],
    [t, rows, width, rank]: [usize; 4],
) -> Case {
    let build = move |g: &mut Graph| {
        let prologue = prologue_of(g, prologue_kind, t, width);
        let (weight, epilogue) = weight(g, epilogue_kind, dtype, [t, rows, width]);
        let a = g.weight("low_a", Type::weight(factors, [rank, width]));
        let b = g.weight("low_b", Type::weight(factors, [rows, rank]));
        let (h1, y) = g.fused_linear_lora(
            &prologue,
            weight,
            Some(&LoraPair { a, b, folded_row: 0, sequences: None }),
            &epilogue,
        );
        std::iter::once(y).chain(h1).collect::<Vec<Value>>()
    };
    let name = format!(
        "{prologue_kind:?} {} {t}x{width} to {rows} {epilogue_kind:?} with {} of rank {rank}",
        dtype.name(),
        factors.name()
    );
    Case::new("fused_linear", name, build).tolerance(tolerance(width + rank))
}
