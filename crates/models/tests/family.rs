//! Dispatch counts and bytes read of the released models' graphs, at full depth and without weights.

use std::collections::BTreeMap;

use rullama_engine::{
    gpu::{DeviceFacts, dispatch_count, dispatches, plan_text},
    graph::{Element, Graph, Step},
};
use rullama_gguf::DType;
use rullama_models::{
    Adapted, Catalog, Expected, Learned,
    decoder::{
        Config, Experts, Kind, Layer, Pass, PassInput, PassOutput, PerLayer, PoolPages, PoolShape,
        Rope, TrainPass, adapted_decoder, train_graph, trainable,
    },
    family::GEMMA4,
};

struct Variant {
    name: &'static str,
    layers: usize,
    width: usize,
    heads: usize,
    /// KV heads of sliding and global layers.
    kv_heads: (usize, usize),
    /// Feed-forward widths of layers with their own KV cache and of the others.
    ffn: (usize, usize),
    every: usize,
    window: usize,
    shared: usize,
    per_layer: usize,
    experts: Option<Experts>,
    /// Format of V projections.
    values: DType,
}

const E2B: Variant = Variant {
    name: "E2B",
    layers: 35,
    width: 1536,
    heads: 8,
    kv_heads: (1, 1),
    ffn: (6144, 12_288),
    every: 5,
    window: 512,
    shared: 20,
    per_layer: 256,
    experts: None,
    values: DType::Q4_K,
};
const E4B: Variant = Variant {
    name: "E4B",
    layers: 42,
    width: 2560,
    kv_heads: (2, 2),
    ffn: (10_240, 10_240),
    every: 6,
    shared: 18,
    ..E2B
};
const B12: Variant = Variant {
    name: "12B",
    layers: 48,
    width: 3840,
    heads: 16,
    kv_heads: (8, 1),
    ffn: (15_360, 15_360),
    every: 6,
    window: 1024,
    shared: 0,
    per_layer: 0,
    experts: None,
    values: DType::Q4_K,
};
const B31: Variant = Variant {
    name: "31B",
    layers: 60,
    width: 5376,
    heads: 32,
    kv_heads: (16, 4),
    ffn: (21_504, 21_504),
    ..B12
};
const B26: Variant = Variant {
    name: "26B-A4B",
    layers: 30,
    width: 2816,
    heads: 16,
    kv_heads: (8, 2),
    ffn: (2112, 2112),
    experts: Some(Experts { count: 128, used: 8, width: 704 }),
    ..B12
};

impl Variant {
    fn config(&self) -> Config {
        let owners = self.layers - self.shared;
        let kind = |i: usize| {
            if (i + 1).is_multiple_of(self.every) { Kind::Global } else { Kind::Sliding }
        };
        let layer = |index: usize| {
            let kind = kind(index);
            let donor = (0..owners).rev().find(|j| self.kind(*j) == kind).expect("a donor");
            Layer {
                index,
                kind,
                head: if kind == Kind::Sliding { 256 } else { 512 },
                kv_heads: if kind == Kind::Sliding { self.kv_heads.0 } else { self.kv_heads.1 },
                ffn: if index < owners { self.ffn.0 } else { self.ffn.1 },
                donor: if index < owners { index } else { donor },
            }
        };
        Config {
            family: &GEMMA4,
            width: self.width,
            heads: self.heads,
            vocabulary: 262_144,
            context: 131_072,
            window: self.window,
            eps: 1e-6,
            softcap: Some(30.0),
            attention_scale: 1.0,
            rope: Rope { sliding: 1e4, global: 1e6, linear: 1.0 },
            per_layer: (self.per_layer > 0).then_some(PerLayer { width: self.per_layer }),
            experts: self.experts,
            layers: (0..self.layers).map(layer).collect(),
            layer_scale: "layer_output_scale",
        }
    }

    fn kind(&self, i: usize) -> Kind {
        if (i + 1).is_multiple_of(self.every) { Kind::Global } else { Kind::Sliding }
    }

    /// The graph of one token, in Ollama's usual mix of formats.
    fn step(&self) -> Graph {
        self.graph(None, None)
    }

    /// The graph of one token before position `end`.
    fn short_context_step(&self, end: usize) -> Graph {
        self.graph(None, Some(end))
    }

    /// The graph of one token with an adapter.
    fn adapted_step(&self, adapted: &Adapted) -> Graph {
        self.graph(Some(adapted), None)
    }

    /// The graph of one token of each of several sequences.
    fn batch(&self, rows: usize, adapted: Option<&Adapted>) -> Graph {
        let pages = PoolPages { pages: 64, entries: 64 };
        let pool = PoolShape { page: 64, global: pages, sliding: pages, gemm: false, slots: rows };
        let pass = Pass {
            tokens: rows,
            input: PassInput::Ids,
            output: PassOutput::GreedyEach,
            pool: Some(pool),
            ..self.pass()
        };
        self.graph_of(&pass, adapted)
    }

    fn graph(&self, adapted: Option<&Adapted>, short_context: Option<usize>) -> Graph {
        self.graph_of(&Pass { short_context, ..self.pass() }, adapted)
    }

    fn pass(&self) -> Pass {
        Pass {
            tokens: 1,
            input: PassInput::Token,
            table: true,
            output: PassOutput::Greedy,
            context: 4096,
            ring: self.window + 512,
            cache: Element::F16,
            suppressed: 0,
            traced: false,
            host_experts: 0,
            blocks: false,
            hidden: false,
            short_context: None,
            pool: None,
        }
    }

    fn graph_of(&self, pass: &Pass, adapted: Option<&Adapted>) -> Graph {
        let config = self.config();
        let catalog = self.catalog(&config);
        let mut segments = adapted_decoder(&config, &catalog, pass, adapted).segments;
        assert_eq!(segments.len(), 1);
        segments.remove(0).graph
    }

    /// The graph that trains an adapter of rank 16 of all weights, and the number of its pairs.
    fn training(&self, tokens: usize, recomputed: usize) -> (Graph, usize) {
        let config = self.config();
        let catalog = self.catalog(&config);
        let learned = |name| Learned { name, rank: 16, scale: 2.0 };
        let adapters: Vec<_> = trainable(&config, &catalog).into_iter().map(learned).collect();
        let pairs = adapters.len();
        let pass = TrainPass {
            tokens,
            supervised: tokens,
            logit_rows: 256,
            table: true,
            adapters,
            dropout: 0.0,
            recomputed,
            learns: true,
        };
        (train_graph(&config, &catalog, &pass).graph, pairs)
    }

    fn catalog(&self, config: &Config) -> Catalog {
        let mix = |tensor: &Expected| {
            let global = |name: &str| {
                let index = name.split('.').nth(1)?.parse::<usize>().ok()?;
                Some(self.kind(index) == Kind::Global)
            };
            let name = tensor.name.as_str();
            // Optional tensors that the released files do not have.
            let absent = ["output.weight", "ffn_gate_exps.weight", "ffn_up_exps.weight"];
            let absent = absent.iter().any(|end| name.ends_with(end))
                && !name.ends_with("attn_output.weight")
                || (tensor.optional && name.ends_with(".scale") && !name.ends_with("exps.scale"))
                || name.contains("ffn_pre_norm")
                || name.contains("ffn_post_norm")
                || name.ends_with("per_expert_scale")
                || (self.shared == 0
                    && name.ends_with("attn_v.weight")
                    && global(name) == Some(true));
            let width = tensor.dims.last().copied().unwrap_or(1);
            (!absent).then(|| match name {
                "token_embd.weight" | "per_layer_token_embd.weight" => DType::Q6_K,
                _ if name.ends_with("ffn_gate_inp.weight") => DType::F32,
                _ if !width.is_multiple_of(256) => DType::Q5_0,
                _ if name.ends_with("attn_v.weight") => self.values,
                _ => DType::Q4_K,
            })
        };
        Catalog::imagined(&config.expected(), mix)
    }
}

/// A device like the large ones: subgroups of 32, 32 KiB of workgroup memory.
fn large() -> DeviceFacts {
    DeviceFacts {
        f16: true,
        subgroups: Some((32, 32)),
        storage_buffers: 10,
        workgroup_bytes: 48 << 10,
        invocations: 1024,
        binding_bytes: 4 << 30,
        buffer_bytes: 4 << 30,
        ..DeviceFacts::floor()
    }
}

#[test]
fn dispatches_per_layer() {
    // Maximum dispatches per layer on a large device and on the floor. Global layers need one more, to combine split-KV partials.
    for (variant, most, floor_most) in
        [(E2B, 7, 14), (E4B, 7, 14), (B12, 5, 13), (B31, 5, 13), (B26, 10, 22)]
    {
        let graph = variant.step();
        let all = dispatch_count(&graph, &large());
        // Outside the layers: embedding, per-layer inputs, final norm, LM head, sampling.
        let around = if variant.per_layer > 0 { 8 } else { 5 };
        assert!(
            all <= most * variant.layers + variant.layers / variant.every + around,
            "{}: {all} dispatches for {} layers",
            variant.name,
            variant.layers
        );
        // The WebGPU minimum limits: wide rows do not fit into workgroup memory, so norms are separate dispatches, and large weights are
        // split into slabs.
        let floor = dispatch_count(&graph, &DeviceFacts::floor());
        assert!(
            floor <= floor_most * variant.layers + around + 30,
            "{} on the floor: {floor} dispatches",
            variant.name
        );
    }
}

/// With a short context, the matmul after attention combines the split-KV partials of global layers.
#[test]
fn short_contexts_need_fewer_dispatches() {
    for variant in [E2B, E4B] {
        let [short, long] = [variant.short_context_step(1024), variant.step()].map(|graph| {
            let facts = DeviceFacts { workgroup_bytes: 48 << 10, storage_buffers: 16, ..large() };
            dispatch_count(&graph, &facts)
        });
        let globals = variant.layers / variant.every;
        assert_eq!(long - short, globals, "{}: {short} dispatches, then {long}", variant.name);
    }
}

/// Rank 16 on all projections.
fn rank_16(layers: usize, slots: Option<usize>) -> Adapted {
    let projections =
        ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"];
    let tensors =
        (0..layers).flat_map(|layer| projections.map(|name| format!("blk.{layer}.{name}.weight")));
    let ranks = tensors.map(|name| (name, 16)).collect();
    Adapted { ranks, dtype: DType::F16, fold: false, slots }
}

/// The dispatches of a graph, without what rows with adapters add: kernels, tilings, grids and stored layouts; and the number of additional dispatches.
fn without_slots(graph: &Graph, facts: &DeviceFacts) -> (Vec<String>, usize) {
    let text = plan_text(graph, facts).expect("all formats have kernels");
    let (slots, others): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.contains("matmul/slot_"));
    let plain = |line: &str| {
        let line = line.split_once(": ").map_or(line, |(_, line)| line);
        let columns = line.split("; ").filter(|column| {
            !column.starts_with("reads ") && !column.starts_with("shares a barrier")
        });
        let line = columns.collect::<Vec<_>>().join("; ");
        [", slot_lora/added", ", slot_sum/rows", ", lora_weight/f16"]
            .iter()
            .fold(line, |line, part| line.replace(part, ""))
    };
    (others.into_iter().map(plain).collect(), slots.len())
}

/// Rows without an adapter are computed by the same kernels in passes with and without adapters, so that they get the same bits.
#[test]
fn adapter_slots_add_a_dispatch_to_each_matmul_and_change_no_other() {
    for (variant, separate_values) in
        [(E2B, false), (Variant { values: DType::Q6_K, ..E2B }, true), (B26, false)]
    {
        for packed_dot in [false, true] {
            let facts = DeviceFacts { packed_dot, ..large() };
            for rows in [1, 4, 8, 16] {
                let (plain, none) = without_slots(&variant.batch(rows, None), &facts);
                let adapted = rank_16(variant.layers, Some(3));
                let graph = variant.batch(rows, Some(&adapted));
                let (with, added) = without_slots(&graph, &facts);
                assert_eq!(plain, with, "{}, {rows} rows", variant.name);
                // Q, K and V; attention output; gate and up; down. V may be a separate matmul.
                let owners = variant.layers - variant.shared;
                let more = if separate_values { owners } else { 0 };
                assert_eq!((none, added), (0, 4 * variant.layers + more), "{}", variant.name);
            }
        }
    }
}

#[test]
fn an_adapter_of_rank_16_adds_few_dispatches() {
    let mut adapted = rank_16(E2B.layers, None);
    // Q, K and V in one matmul; V in a separate matmul.
    for variant in [E2B, Variant { values: DType::Q6_K, ..E2B }] {
        adapted.fold = false;
        let plain = dispatch_count(&variant.step(), &large());
        let with = dispatch_count(&variant.adapted_step(&adapted), &large());
        // One per matmul input: the down-projection is too large for every workgroup to repeat.
        assert!(with <= plain + 4 * E2B.layers, "{plain} dispatches, {with} with an adapter");
        // All down-projections are folded, except in the first layer, which has no branch before it.
        adapted.fold = true;
        let with = dispatch_count(&variant.adapted_step(&adapted), &large());
        assert!(with <= plain + 2, "{plain} dispatches, {with} with a folded adapter");
    }
}

/// In training, a pair is two matmuls and its gradients four; sums over the tokens and of a shared input's gradients need no dispatch of
/// their own.
#[test]
fn a_trained_pair_takes_six_dispatches() {
    for facts in [large(), DeviceFacts::floor()] {
        let (graph, pairs) = E2B.training(1024, 0);
        let mut counts = BTreeMap::new();
        for dispatch in dispatches(&graph, &facts).expect("all formats have kernels") {
            *counts.entry(dispatch.kernel.name).or_insert(0) += 1;
        }
        println!("{pairs} pairs, {} dispatches: {counts:#?}", counts.values().sum::<usize>());
        let count = |kernel| counts.get(kernel).copied().unwrap_or_default();
        assert_eq!(count("matmul/narrow_columns"), 2 * pairs);
        assert_eq!(count("matmul/outer_products"), 2 * pairs);
        assert_eq!(count("matmul/rank_update"), 2 * pairs);
        assert_eq!([count("matmul/dense_tile"), count("matmul/dense_dot")], [0, 0]);
        // The loss only.
        assert_eq!(count("accumulate/sum"), 4);
        // Q, K and V are split and their gradients joined, except in the first layer: its input needs no gradient. Gate and up are neither.
        let owners = E2B.layers - E2B.shared;
        assert_eq!(count("columns/copy"), 6 * owners - 3);
    }
}

#[test]
fn a_token_of_e2b_reads_one_and_a_half_gigabytes() {
    let step = Step { position: 100, count: 1, ..Step::default() };
    let read = E2B.step().cost(&step).bytes_read;
    assert!((1_200_000_000..1_600_000_000).contains(&read), "{read} bytes");
}
