//! Cases of attention from raw projections.

use rullama_gguf::DType;

use super::{super::select::DECODE_TOKENS, Setting, cache, score_tolerance};
use crate::{
    cpu::Data,
    graph::{Element, Graph, Type},
    ops::{
        Branch, Epilogue, FoldedDown, HeadForm, NewKv, Prologue, QueryInputs, RopePairs, Slice,
        rope_table,
    },
    suite::{Case, Tolerance},
};

const EPS: f32 = 1e-6;

/// The layout of a layer's raw queries, keys and values.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Projections {
    /// Queries only: the KV caches belong to another layer.
    Shared,
    /// Queries, keys and values in separate buffers.
    Separate,
    /// The raw keys are also the raw values.
    KeysAreValues,
    /// Queries, keys and values in one row.
    Stacked,
    /// Queries and keys in one row, values in a separate buffer.
    HalfStacked,
}

const ALL: [Projections; 5] = [
    Projections::Separate,
    Projections::Shared,
    Projections::Stacked,
    Projections::KeysAreValues,
    Projections::HalfStacked,
];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (i, setting) in settings().into_iter().enumerate() {
        cases.push(case(Element::F32, ALL[i % ALL.len()], setting));
    }
    for (width, element) in [
        (16, Element::F32),
        (32, Element::Q8),
        (48, Element::F16),
        (128, Element::F32),
        (256, Element::F16),
        (512, Element::F32),
        (512, Element::Q8),
    ] {
        cases.push(case(
            element,
            Projections::Stacked,
            Setting::new(1, (8, 1), width).cache(90, None).at(70, 1),
        ));
        cases.push(case(
            element,
            Projections::Separate,
            Setting::new(2, (8, 2), width).cache(30, None).at(5, 2),
        ));
    }
    for element in [Element::F32, Element::F16, Element::Q8] {
        cases.push(case(
            element,
            Projections::Separate,
            Setting::new(4, (4, 1), 64).cache(300, None).at(200, 3),
        ));
    }
    // Heads of other models: no norms and adjacent RoPE pairs, or norms of queries and keys only. All row forms, and a separate store dispatch.
    let llama = HeadForm { qk_norm: false, v_norm: false, pairs: RopePairs::Adjacent, eps: EPS };
    let gemma3 = HeadForm { qk_norm: true, pairs: RopePairs::Halves, ..llama };
    for (i, form) in [llama, gemma3].into_iter().enumerate() {
        for (t, heads, width, position) in
            [(1, (9, 3), 64, 0), (1, (9, 3), 64, 290), (1, (4, 1), 256, 200), (4, (8, 2), 32, 20)]
        {
            let setting = Setting::new(t, heads, width).cache(300, None).at(position, t as u32);
            for projections in [Projections::Stacked, ALL[i]] {
                cases.push(formed(Element::F16, projections, setting, form));
            }
        }
        let setting = Setting::new(9, (4, 2), 64).cache(90, None).at(70, 8);
        cases.push(formed(Element::F32, Projections::Separate, setting, form));
    }
    // More tokens than the fused op supports: split into several ops.
    cases.push(case(
        Element::F32,
        Projections::Stacked,
        Setting::new(9, (4, 2), 64).cache(90, None).at(70, 8),
    ));
    cases.push(case(
        Element::F32,
        Projections::Shared,
        Setting::new(9, (4, 2), 64).cache(90, None).at(70, 9),
    ));
    for dtype in [DType::Q8_0, DType::Q4_K] {
        cases.push(with_matmul(dtype, Setting::new(1, (8, 2), 64).cache(300, None).at(290, 1)));
    }
    // The reader combines KV splits, some without keys, and ring buffers.
    for position in [0, 5, 300, 999] {
        cases.push(with_matmul(
            DType::Q4_K,
            Setting::new(1, (8, 1), 128).cache(1000, None).at(position, 1),
        ));
    }
    cases.push(with_matmul(
        DType::Q6_K,
        Setting::new(1, (8, 2), 64).cache(101, Some(100)).at(1001, 1),
    ));
    cases.push(first_token());
    cases.extend(with_lora_pairs());
    cases.extend(benches());
    cases
}

/// The first token sees only itself: the output is its value, normed.
fn first_token() -> Case {
    let v: Vec<f32> = (0..16).map(|i| if i % 3 == 0 { 3.0 } else { -3.0 }).collect();
    let want: Vec<f32> = v.iter().map(|v| v.signum()).collect();
    case(Element::F32, Projections::Separate, Setting::new(1, (1, 1), 16).cache(100, None).at(0, 1))
        .given("v", Data::F32(v))
        .gives(&want)
}

fn settings() -> Vec<Setting> {
    // Compiling a kernel takes seconds on software adapters: nearly all settings have four or eight rows.
    let width_64 = |t, heads, slots, window, position, count| {
        Setting::new(t, heads, 64).cache(slots, window).at(position, count)
    };
    let mut settings = vec![width_64(1, (8, 1), 700, None, 699, 1)];
    // Enough keys for two rows in a workgroup; with an odd number of rows, one is computed twice.
    settings.extend([
        width_64(1, (8, 1), 1500, None, 1400, 1),
        width_64(1, (8, 2), 1500, None, 3, 1),
        width_64(1, (9, 1), 1500, None, 1499, 1),
        Setting::new(1, (4, 2), 128).cache(1500, Some(1300)).at(5000, 1),
    ]);
    // An empty cache, a few keys, and a full cache; for all projection layouts.
    for position in [0, 1, 65, 290] {
        for t in [1, 2, 4] {
            settings.push(width_64(t, (8, 2), 300, None, position, t as u32));
        }
    }
    settings.extend([
        width_64(8, (8, 1), 300, None, 100, 8),
        width_64(8, (8, 1), 300, None, 100, 3),
        width_64(8, (2, 2), 40, None, 7, 5),
        width_64(1, (9, 1), 257, None, 256, 1),
    ]);
    // Ring buffers, before and after they wrap, with one workgroup per kv head and with several.
    for position in [0, 6, 7, 8, 30, 1001, 262_143] {
        settings.push(width_64(1, (8, 2), 8, Some(8), position, 1));
        settings.push(width_64(4, (4, 1), 11, Some(8), position, 3));
        settings.push(width_64(2, (8, 2), 101, Some(100), position, 2));
        settings.push(width_64(4, (4, 1), 103, Some(100), position, 3));
    }
    settings
}

fn case(element: Element, projections: Projections, setting: Setting) -> Case {
    formed(element, projections, setting, EPS.into())
}

fn formed(element: Element, projections: Projections, setting: Setting, form: HeadForm) -> Case {
    let before = Setting {
        count: if projections == Projections::Shared { setting.count } else { 0 },
        ..setting
    };
    let caches = [17, 40].map(|salt| match (element, cache(before, salt)) {
        // Q8 has no infinity; a value out of range is detected too.
        (Element::Q8, Data::F32(values)) => {
            Data::F32(values.iter().map(|x| if x.is_finite() { *x } else { 4.0 }).collect())
        }
        (_, values) => values,
    });
    let [k, v] = caches;
    graph(element, projections, setting, form).given("k_cache", k).given("v_cache", v)
}

/// With a matmul as the only reader, which may prefer another layout or combine KV splits.
fn with_matmul(dtype: DType, setting: Setting) -> Case {
    let mut case = case(Element::F32, Projections::Separate, setting);
    let width = setting.heads.0 * setting.width;
    let attention = case.build;
    case.name = format!("{}, then {}", case.name, dtype.name());
    case.build = Box::new(move |g: &mut Graph| {
        let mut results = attention(g);
        let weight = g.weight("w", Type::weight(dtype, [24, width]));
        results[0] = g.linear(results[0], weight);
        results
    });
    case.tolerance(Tolerance::EXPONENTIAL.terms(width * setting.slots))
}

/// Attention, an output projection with a LoRA pair, and the gates after it: the device decides which dispatch multiplies with LoRA A. Head
/// widths fit teams of 8 and of 32 lanes.
fn with_lora_pairs() -> Vec<Case> {
    let mut cases = Vec::new();
    for (width, rank, position, projections, element) in [
        (64, 16, 290, Projections::Separate, Element::F32),
        (64, 4, 0, Projections::Stacked, Element::F16),
        (128, 20, 999, Projections::Shared, Element::F32),
        (128, 64, 300, Projections::Separate, Element::F32),
        (128, 100, 999, Projections::Stacked, Element::F32),
        (128, 20, 300, Projections::HalfStacked, Element::Q8),
        (256, 16, 511, Projections::Stacked, Element::F16),
        (256, 20, 5, Projections::Shared, Element::F16),
        (256, 64, 999, Projections::KeysAreValues, Element::F32),
        (512, 4, 0, Projections::Shared, Element::F32),
        (512, 16, 640, Projections::Stacked, Element::F16),
        (512, 100, 700, Projections::Separate, Element::F32),
    ] {
        let setting = Setting::new(1, (8, 1), width).cache(1000, None).at(position, 1);
        let attention = case(element, projections, setting);
        let tolerance = match element {
            // The tolerance of attention, through two more matmuls.
            Element::F16 => Tolerance { steps: 32.0, ..Tolerance::EXPONENTIAL.half() },
            Element::Q8 => Tolerance { unit: 1.0 / 256.0, steps: 16.0, ..Tolerance::EXPONENTIAL },
            _ => Tolerance::EXPONENTIAL.terms(8 * width * setting.slots),
        };
        let pair = with_lora_pair(attention, setting, (rank, DType::F32, 8));
        cases.push(pair.tolerance(tolerance));
    }
    for (heads, dtype, folded) in [((4, 4), DType::F16, 0), ((6, 2), DType::F16, 4)] {
        let setting = Setting::new(1, heads, 64).cache(1000, Some(600)).at(1001, 1);
        let attention = case(Element::F32, Projections::Separate, setting);
        cases.push(with_lora_pair(attention, setting, (16, dtype, folded)));
    }
    // LoRA A is not fused into attention of several tokens or of long caches.
    for setting in [
        Setting::new(2, (8, 2), 64).cache(300, None).at(200, 2),
        Setting::new(1, (8, 1), 64).cache(1500, None).at(1400, 1),
    ] {
        let attention = case(Element::F32, Projections::Separate, setting);
        cases.push(with_lora_pair(attention, setting, (16, DType::F32, 8)));
    }
    cases
}

/// An output projection with a LoRA pair of this rank and A in this format; `folded` rows of the gates' A are folded into it.
fn with_lora_pair(
    mut case: Case,
    setting: Setting,
    (rank, dtype, folded): (usize, DType, usize),
) -> Case {
    const STREAM: usize = 96;
    let (t, width) = (setting.t, setting.heads.0 * setting.width);
    let attention = case.build;
    case.name =
        format!("{}, back with {} of rank {rank}, folded {folded}", case.name, dtype.name());
    case.build = Box::new(move |g: &mut Graph| {
        let mut results = attention(g);
        let h = g.input("h", Type::f32([t, STREAM]));
        let norm = |g: &mut Graph, name: &str| g.weight(name, Type::weight(DType::F32, [STREAM]));
        let (post, next) = (norm(g, "post"), norm(g, "next"));
        let back = g.weight("back", Type::weight(DType::Q8_0, [STREAM, width]));
        let own = g.weight("own", Type::weight(dtype, [rank + folded, width]));
        let low = Some(g.weight("own_b", Type::weight(DType::F16, [rank, STREAM])));
        let branch = match folded {
            0 => g.linear_with_down(results[0], back, own),
            _ => {
                let p = g.weight("p", Type::weight(dtype, [folded, STREAM]));
                g.linear_with_folded_down(results[0], back, &FoldedDown { q: own, h, p })
            }
        };
        let branch = Branch {
            residual: h,
            branch,
            weight: post,
            post_norm: true,
            scale: None,
            lora_b: low,
            folded: 2 * folded,
        };
        let start = Prologue::ResidualAdd { branch, next: Some(next), eps: EPS };
        let gates = g.weight("gates", Type::weight(DType::Q8_0, [80, STREAM]));
        let (h1, y) = g.fused_linear(&start, gates, &Epilogue::GEGLU);
        results[0] = y;
        results.extend(h1);
        results
    });
    case.tolerance(Tolerance::EXPONENTIAL.terms(width * setting.slots))
}

fn graph(element: Element, projections: Projections, setting: Setting, form: HeadForm) -> Case {
    let Setting { t, heads: (heads, kv_heads), width, slots, window, position, count } = setting;
    let build = move |g: &mut Graph| {
        let (q, kv) = raw(g, projections, t, (heads * width, kv_heads * width));
        let cache = Type::cache(element, [slots, kv_heads, width]);
        let norm = Type::weight(DType::F32, [width]);
        let rope = g.input("rope", Type::f32([t, width / 2, 2]));
        let weight = |g: &mut Graph, name: &str| match form.qk_norm {
            true => g.weight(name, norm.clone()),
            false => rope,
        };
        let queries = QueryInputs {
            q,
            q_norm: weight(g, "q_norm"),
            rope,
            k_cache: g.state("k_cache", cache.clone()),
            v_cache: g.state("v_cache", cache),
            sequences: None,
        };
        let new_kv = kv.map(|(k, v)| NewKv { k, v, k_norm: weight(g, "k_norm") });
        vec![g.attention_qkv(queries, new_kv, window, form), queries.k_cache, queries.v_cache]
    };
    let seen = window.map_or("all".into(), |window| format!("window {window}"));
    let norms = match (form.qk_norm, form.v_norm) {
        (true, true) => "",
        (true, false) => ", raw values",
        (false, _) => ", no norms, adjacent pairs",
    };
    let name = format!(
        "{element:?} {projections:?} {t}x{heads}/{kv_heads}x{width} {seen} of {slots} at {position}+{count}{norms}"
    );
    let tolerance = match element {
        // New keys and values near a rounding boundary may round either way.
        Element::F16 => Tolerance { steps: 8.0, ..Tolerance::EXPONENTIAL.half() },
        Element::Q8 => Tolerance { unit: 1.0 / 256.0, steps: 8.0, ..Tolerance::EXPONENTIAL },
        // Prefill: matrix units round the factors of the scores to f16.
        _ if t > DECODE_TOKENS => score_tolerance(width, width.max(slots)),
        _ => Tolerance::EXPONENTIAL.terms(width.max(slots)),
    };
    let table = rope_table(position..position + t as u32, 1e4, width, None);
    Case::new("attention_qkv", name, build)
        .step(position, count)
        .given("rope", Data::F32(table))
        .tolerance(tolerance)
}

/// Raw queries, and raw keys and values if the layer has its own.
fn raw(
    g: &mut Graph,
    projections: Projections,
    t: usize,
    (q, kv): (usize, usize),
) -> (Slice, Option<(Slice, Slice)>) {
    let mut rows = |name: &str, width: usize| g.input(name, Type::f32([t, width]));
    match projections {
        Projections::Shared => (rows("q", q).into(), None),
        Projections::Separate => {
            (rows("q", q).into(), Some((rows("k", kv).into(), rows("v", kv).into())))
        }
        Projections::KeysAreValues => {
            let k = rows("k", kv).into();
            (rows("q", q).into(), Some((k, k)))
        }
        Projections::Stacked => {
            let all = rows("qkv", q + 2 * kv);
            let (k, v) = (Slice::new(all, q, kv), Slice::new(all, q + kv, kv));
            (Slice::new(all, 0, q), Some((k, v)))
        }
        Projections::HalfStacked => {
            let all = rows("qk", q + kv);
            (Slice::new(all, 0, q), Some((Slice::new(all, q, kv), rows("v", kv).into())))
        }
    }
}

/// Shapes of E2B: layers with their own caches and layers that share them.
fn benches() -> Vec<Case> {
    let sliding =
        |t, position| Setting::new(t, (8, 1), 256).cache(511 + t, Some(512)).at(position, t as u32);
    let global =
        |t, position| Setting::new(t, (8, 1), 512).cache(32_768, None).at(position, t as u32);
    let lists = [
        (Projections::Stacked, sliding(1, 8191)),
        (Projections::Shared, sliding(1, 8191)),
        (Projections::Stacked, sliding(4, 8191)),
        (Projections::Stacked, global(1, 0)),
        (Projections::Stacked, global(1, 511)),
        (Projections::Stacked, global(1, 8191)),
        (Projections::Shared, global(1, 8191)),
    ];
    lists
        .into_iter()
        .map(|(projections, setting)| graph(Element::F16, projections, setting, EPS.into()).bench())
        .collect()
}
