//! The dispatches of training: the flash kernels forward, and one kernel for all three gradients.

use bytemuck::NoUninit;

use crate::{
    gpu::{BufferRef, Dispatch, GpuCall, Kernel, Part},
    graph::Element,
    ops::{
        attention::{
            mask::{Mask, packed_causal},
            prefill::{self, FlashTile, ROWS, WEIGHTED_SUMS, rows_per_lane, stage},
            problem::{Params, Problem, word},
        },
        parts::reduce,
        split_k::{add_up, chunks, parts_at},
    },
};

static DELTA: Kernel = Kernel { name: "attention/delta", source: include_str!("delta.wgsl") };
static GRADIENTS: Kernel =
    Kernel { name: "attention/gradients", source: include_str!("gradients.wgsl") };
static QUERIES: Part =
    Part { kind: "side", name: "side/queries", source: include_str!("side/queries.wgsl") };
static KEYS: Part =
    Part { kind: "side", name: "side/keys", source: include_str!("side/keys.wgsl") };

/// The minimum number of rows of the other side per workgroup.
const LEAST_OTHERS: usize = 128;

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct DeltaParams {
    rows: u32,
}

/// Attention of packed sequences over themselves, with the log-sum-exp of each row.
pub(super) fn forward(window: Option<u32>, call: &GpuCall<'_>) -> Vec<Dispatch> {
    let problem = Problem::new(Mask::Causal { window }, call);
    let tile = FlashTile::new(problem.width, call.facts);
    let flash = prefill::dispatch(&problem, Element::F32, tile);
    vec![packed_causal(flash, BufferRef::Input(3), BufferRef::Output(1))]
}

/// `dy · y` of each row, then the three gradients.
pub(super) fn gradients(window: Option<u32>, call: &GpuCall<'_>) -> Vec<Dispatch> {
    let problem = Problem::new(Mask::Causal { window }, call);
    let rows = problem.tokens * problem.heads;
    let delta = BufferRef::Scratch(0, rows as u64 * 4);
    let deltas = Dispatch::new(&DELTA)
        .part(reduce(call.facts))
        .constant("WIDTH", word(problem.width))
        .constant("WG", 64u32)
        .params(&DeltaParams { rows: word(rows) })
        .read(BufferRef::Input(4))
        .read(BufferRef::Input(6))
        .write(delta)
        .grid_over(rows);
    let gradient = |side: &'static Part, plain: u32, output: usize| {
        let (own, others) = match output {
            0 => (problem.rows(), problem.tokens),
            _ => (problem.tokens, problem.rows()),
        };
        let blocks = own.div_ceil(ROWS);
        let chunks = chunks(blocks * problem.kv_heads, others, LEAST_OTHERS);
        let (results, output) = (own * problem.kv_heads * problem.width, BufferRef::Output(output));
        // Scratch buffer 0 holds the deltas, which all three gradients read.
        let sums = if chunks > 1 { parts_at(1, results, chunks) } else { output };
        let dispatch = Dispatch::new(&GRADIENTS)
            .indexing(&Params { splits: word(chunks), ..problem.params() })
            .part(side)
            .part(&WEIGHTED_SUMS)
            .constant("DIM4", word(problem.vec4s()))
            .constant("STAGE", word(stage(problem.width, call.facts)))
            .constant("EACH", rows_per_lane(problem.width))
            .constant("PLAIN", plain);
        let inputs = [0, 1, 2, 6, 5].into_iter().map(BufferRef::Input).chain([delta]);
        let bound = inputs.fold(dispatch, Dispatch::read).write(sums);
        let dispatch = bound.read(BufferRef::Input(3)).grid(blocks, problem.kv_heads, chunks);
        let sum = (chunks > 1).then(|| add_up(sums, results, chunks, output));
        [dispatch].into_iter().chain(sum)
    };
    let sides = [(&QUERIES, 0), (&KEYS, 0), (&KEYS, 1)];
    let gradients =
        (0..).zip(sides).flat_map(|(output, (side, plain))| gradient(side, plain, output));
    [deltas].into_iter().chain(gradients).collect()
}
