//! Linear layers with a LoRA pair.

use rullama_gguf::DType;

use super::{Back, FRONTS, Front, prologue_of, tolerance, weight};
use crate::{
    graph::{Graph, Type, Value},
    ops::{Branch, FoldedDown, LoraPair, Prologue},
    suite::Case,
};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for front in FRONTS {
        for back in [Back::Plain, Back::Geglu, Back::GeluMul] {
            let halves = [DType::Q4_0, DType::F16];
            cases.push(fused_linear(front, back, halves, [1, 264, 64, 48]));
        }
        cases.push(
            fused_linear(front, Back::Plain, [DType::F32, DType::F32], [2, 8, 5, 2]).gradient(),
        );
    }
    for (front, back) in [
        (Front::Rows, Back::Plain),
        (Front::Norm, Back::Geglu),
        (Front::Branch { scaled: false, next: false }, Back::GeluMul),
    ] {
        for (dtype, factors, t, rows, width, rank) in [
            (DType::Q8_0, DType::F32, 1, 40, 96, 4),
            // Several tokens; an inner size that is no multiple of four; rows that are none of a unit.
            (DType::Q4_0, DType::F16, 3, 8, 64, 8),
            (DType::F16, DType::F32, 1, 8, 32, 3),
            (DType::F32, DType::F32, 1, 8, 17, 4),
        ] {
            cases.push(fused_linear(front, back, [dtype, factors], [t, rows, width, rank]));
        }
    }
    let branch = Front::Branch { scaled: true, next: true };
    for (front, back, dtype, rows, width, rank) in [
        // Teams of all kinds; columns as int8 pairs; too much for every workgroup to make it for itself.
        (Front::Rows, Back::Geglu, DType::Q4_0, 33_000, 64, 16),
        (Front::Norm, Back::Plain, DType::Q4_0, 33_001, 64, 16),
        (branch, Back::Geglu, DType::Q8_0, 8, 1536, 32),
        (Front::Rows, Back::Plain, DType::Q8_0, 40, 6144, 16),
        (branch, Back::Plain, DType::Q8_0, 40, 1536, 128),
    ] {
        cases.push(fused_linear(front, back, [dtype, DType::F16], [1, rows, width, rank]));
    }
    for (next, back) in [(true, Back::Plain), (true, Back::Geglu), (false, Back::GeluMul)] {
        // Before a linear layer without an adapter, and before one with its own; several tokens.
        let front = |rank| Front::Lora { rank, next };
        cases.push(super::fused_linear(front(12), back, DType::Q8_0, [1, 40, 96]));
        cases.push(super::fused_linear(front(20), back, DType::Q8_0, [1, 40, 1536]));
        cases.push(super::fused_linear(front(4), back, DType::Q8_0, [3, 8, 64]));
        cases.push(fused_linear(front(8), back, [DType::Q8_0, DType::F16], [1, 40, 96, 4]));
        cases.push(fused_linear(front(16), back, [DType::Q8_0, DType::F16], [1, 40, 1536, 16]));
    }
    let low = Front::Lora { rank: 4, next: true };
    cases.push(super::fused_linear(low, Back::Plain, DType::F32, [2, 8, 5]).gradient());
    for (dtype, factors, sizes) in [
        (DType::Q8_0, DType::F16, [1, 40, 96, 8]),
        (DType::Q8_0, DType::F32, [1, 40, 6144, 4]),
        (DType::Q4_0, DType::F16, [1, 33_000, 64, 16]),
        // Several tokens; rows that are none of a unit.
        (DType::Q4_0, DType::F16, [3, 8, 64, 8]),
        (DType::F32, DType::F32, [1, 8, 17, 4]),
    ] {
        cases.push(with_down(dtype, factors, sizes));
    }
    cases.push(with_down(DType::F32, DType::F32, [2, 8, 5, 4]).gradient());
    for (dtype, factors, sizes) in [
        (DType::Q8_0, DType::F32, [1, 40, 96, 8]),
        (DType::Q4_0, DType::F16, [1, 40, 6144, 4]),
        // Several tokens; rows that are none of a unit.
        (DType::Q4_0, DType::F32, [3, 8, 64, 8]),
        (DType::F32, DType::F32, [1, 8, 17, 4]),
    ] {
        cases.push(with_folded_down(dtype, factors, sizes));
    }
    cases.extend([DType::Q4_K, DType::Q6_K].map(after_geglu));
    for (low, back, rows, width, rank, others) in [
        (0, Back::Plain, 40, 96, 8, [0, 0]),
        (8, Back::Geglu, 40, 96, 4, [0, 0]),
        // Many rows; more of the inner size than a team has lanes.
        (0, Back::Geglu, 33_000, 64, 16, [0, 0]),
        (16, Back::Geglu, 40, 1536, 32, [0, 0]),
        (12, Back::Plain, 40, 1536, 96, [0, 0]),
        // For several linear layers at once.
        (0, Back::Plain, 40, 96, 8, [4, 0]),
        (0, Back::Plain, 40, 1536, 32, [0, 16]),
        (20, Back::Plain, 24, 1536, 16, [32, 4]),
    ] {
        cases.push(ahead(low, back, [rows, width, rank], others));
    }
    cases.extend(benches());
    cases
}

/// A linear layer with the LoRA down-projection beside its weight.
fn with_down(dtype: DType, factors: DType, [t, rows, width, rank]: [usize; 4]) -> Case {
    let build = move |g: &mut Graph| {
        let x = g.input("x", Type::f32([t, width]));
        let weight = g.weight("w", Type::weight(dtype, [rows, width]));
        let a = g.weight("low_a", Type::weight(factors, [rank, width]));
        vec![g.linear_with_down(x, weight, a)]
    };
    let (dtype, factors) = (dtype.name(), factors.name());
    let name = format!("{dtype} {t}x{width} to {rows} beside {factors} of rank {rank}");
    Case::new("fused_linear", name, build).tolerance(tolerance(width))
}

/// The same with linear layers of the stream after it.
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
        format!("{dtype} {t}x{width} to {rows} beside {factors} of rank {rank}, of the stream too");
    Case::new("fused_linear", name, build).tolerance(tolerance(stream))
}

/// The same after gates, which lay what they make in the order in which this weight is read.
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
    let name = format!("{} beside F32 of rank {rank} after GeGLU", dtype.name());
    Case::new("fused_linear", name, build).tolerance(tolerance(rows + inner))
}

/// A linear layer whose first factor was met ahead, between those of others: here by operations of their own, as it is defined.
fn ahead(
    low: usize,
    back: Back,
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
        let transposed = (low > 0).then(|| {
            let b = g.weight("branch_b", Type::weight(DType::F16, [low, width]));
            let z = g.input("z", Type::f32([1, low]));
            let more = g.linear_t(z, b);
            whole = g.add(own, more);
            parts.push(z);
            b
        });
        let weighted = g.scale_row(whole, post, 1.0);
        for met in [weighted, h] {
            let met = g.scale_row(met, next, 1.0);
            parts.push(g.linear(met, a));
            let at = parts.len() - 1;
            for (name, rows, at) in [("before", before, at + 1), ("after", after, at)] {
                if rows > 0 {
                    let other = g.weight(name, Type::weight(DType::F16, [rows, width]));
                    parts.insert(at, g.linear(met, other));
                }
            }
        }
        let branch = g.join_columns(&parts);
        let folded = 2 * (after + rank + before);
        let branch =
            Branch { residual: h, branch, weight: post, scale, lora_b: transposed, folded };
        let prologue = Prologue::ResidualAdd { branch, next: Some(next), eps: super::EPS };
        let (weight, epilogue) = weight(g, back, DType::Q8_0, [1, rows, width]);
        let (h1, y) = g.fused_linear_lora(
            &prologue,
            weight,
            Some(&LoraPair { a, b, folded_row: after }),
            &epilogue,
        );
        std::iter::once(y).chain(h1).collect::<Vec<Value>>()
    };
    let name = format!(
        "1x{width} to {rows} {back:?}, rank {rank} folded between {after} and {before}, after rank {low}"
    );
    Case::new("fused_linear", name, build).tolerance(tolerance(width + rank))
}

/// The linear layers of a layer of Gemma 4 E2B with rank 16: queries, keys and values; back; gate and up; down.
fn benches() -> Vec<Case> {
    let next = Front::Branch { scaled: true, next: true };
    let low = Front::Lora { rank: 16, next: true };
    let halves = [DType::Q4_K, DType::F16];
    let others = [
        with_down(DType::Q4_K, DType::F16, [1, 1536, 2048, 16]).bench(),
        with_down(DType::Q4_K, DType::F16, [1, 1536, 12_288, 16]).bench(),
        fused_linear(low, Back::Geglu, halves, [1, 24_576, 1536, 32]).bench(),
    ];
    let shapes = [
        (next, Back::Plain, 2560, 1536, 48),
        (Front::Rows, Back::Plain, 1536, 2048, 16),
        (next, Back::Geglu, 24_576, 1536, 32),
        (Front::Rows, Back::Plain, 1536, 12_288, 16),
    ];
    let bench = |(front, back, rows, width, rank)| {
        fused_linear(front, back, [DType::Q4_K, DType::F16], [1, rows, width, rank]).bench()
    };
    shapes.map(bench).into_iter().chain(others).collect()
}

fn fused_linear(
    front: Front,
    back: Back,
    [dtype, factors]: [DType; 2],
    [t, rows, width, rank]: [usize; 4],
) -> Case {
    let build = move |g: &mut Graph| {
        let prologue = prologue_of(g, front, t, width);
        let (weight, epilogue) = weight(g, back, dtype, [t, rows, width]);
        let a = g.weight("low_a", Type::weight(factors, [rank, width]));
        let b = g.weight("low_b", Type::weight(factors, [rows, rank]));
        let (h1, y) = g.fused_linear_lora(
            &prologue,
            weight,
            Some(&LoraPair { a, b, folded_row: 0 }),
            &epilogue,
        );
        std::iter::once(y).chain(h1).collect::<Vec<Value>>()
    };
    let name = format!(
        "{front:?} {} {t}x{width} to {rows} {back:?} with {} of rank {rank}",
        dtype.name(),
        factors.name()
    );
    Case::new("fused_linear", name, build).tolerance(tolerance(width + rank))
}
