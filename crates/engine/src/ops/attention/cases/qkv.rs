//! Cases of attention from raw projections.

use rullama_gguf::DType;

use super::{Setting, cache};
use crate::{
    cpu::Data,
    graph::{Element, Graph, Type},
    ops::{Ahead, Branch, Finish, NewKv, QueryInputs, Slice, Start, rope_table},
    suite::{Case, Tolerance},
};

const EPS: f32 = 1e-6;

/// What a layer brings.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Products {
    /// Queries alone: the caches are another layer's.
    Shared,
    Apart,
    KeysAreValues,
    /// Queries, keys and values in one row.
    Stacked,
    /// Queries and keys in one row, values apart.
    HalfStacked,
}

const ALL: [Products; 5] = [
    Products::Apart,
    Products::Shared,
    Products::Stacked,
    Products::KeysAreValues,
    Products::HalfStacked,
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
            Products::Stacked,
            Setting::new(1, (8, 1), width).cache(90, None).at(70, 1),
        ));
        cases.push(case(
            element,
            Products::Apart,
            Setting::new(2, (8, 2), width).cache(30, None).at(5, 2),
        ));
    }
    for element in [Element::F32, Element::F16, Element::Q8] {
        cases.push(case(
            element,
            Products::Apart,
            Setting::new(4, (4, 1), 64).cache(300, None).at(200, 3),
        ));
    }
    // More tokens than the operation takes: several operations instead.
    cases.push(case(
        Element::F32,
        Products::Stacked,
        Setting::new(9, (4, 2), 64).cache(90, None).at(70, 8),
    ));
    cases.push(case(
        Element::F32,
        Products::Shared,
        Setting::new(9, (4, 2), 64).cache(90, None).at(70, 9),
    ));
    for dtype in [DType::Q8_0, DType::Q4_K] {
        cases.push(with_product(dtype, Setting::new(1, (8, 2), 64).cache(300, None).at(290, 1)));
    }
    // What combines KV splits meets some without a key, and rings.
    for position in [0, 5, 300, 999] {
        cases.push(with_product(
            DType::Q4_K,
            Setting::new(1, (8, 1), 128).cache(1000, None).at(position, 1),
        ));
    }
    cases.push(with_product(
        DType::Q6_K,
        Setting::new(1, (8, 2), 64).cache(101, Some(100)).at(1001, 1),
    ));
    cases.push(first_token());
    cases.extend(with_pairs());
    cases.extend(benches());
    cases
}

/// The first token sees itself: its own value comes out, normed.
fn first_token() -> Case {
    let v: Vec<f32> = (0..16).map(|i| if i % 3 == 0 { 3.0 } else { -3.0 }).collect();
    let want: Vec<f32> = v.iter().map(|v| v.signum()).collect();
    case(Element::F32, Products::Apart, Setting::new(1, (1, 1), 16).cache(100, None).at(0, 1))
        .given("v", Data::F32(v))
        .gives(&want)
}

fn settings() -> Vec<Setting> {
    // Compiling a kernel takes software adapters seconds: nearly all of these have four or eight rows.
    let few = |t, heads, slots, window, position, count| {
        Setting::new(t, heads, 64).cache(slots, window).at(position, count)
    };
    let mut settings = vec![few(1, (8, 1), 700, None, 699, 1)];
    // So many keys that two rows are taken at a time, and one of an odd number twice.
    settings.extend([
        few(1, (8, 1), 1500, None, 1400, 1),
        few(1, (8, 2), 1500, None, 3, 1),
        few(1, (9, 1), 1500, None, 1499, 1),
        Setting::new(1, (4, 2), 128).cache(1500, Some(1300)).at(5000, 1),
    ]);
    // Nothing before the run, a little, and a full cache; for all kinds of products.
    for position in [0, 1, 65, 290] {
        for t in [1, 2, 4] {
            settings.push(few(t, (8, 2), 300, None, position, t as u32));
        }
    }
    settings.extend([
        few(8, (8, 1), 300, None, 100, 8),
        few(8, (8, 1), 300, None, 100, 3),
        few(8, (2, 2), 40, None, 7, 5),
        few(1, (9, 1), 257, None, 256, 1),
    ]);
    // Rings, before and after they wrap, with one workgroup per kv head and with several.
    for position in [0, 6, 7, 8, 30, 1001, 262_143] {
        settings.push(few(1, (8, 2), 8, Some(8), position, 1));
        settings.push(few(4, (4, 1), 11, Some(8), position, 3));
        settings.push(few(2, (8, 2), 101, Some(100), position, 2));
        settings.push(few(4, (4, 1), 103, Some(100), position, 3));
    }
    settings
}

fn case(element: Element, products: Products, setting: Setting) -> Case {
    let before =
        Setting { count: if products == Products::Shared { setting.count } else { 0 }, ..setting };
    let caches = [17, 40].map(|salt| match (element, cache(before, salt)) {
        // Bytes know no infinity; numbers of another size are found out too.
        (Element::Q8, Data::F32(numbers)) => {
            Data::F32(numbers.iter().map(|x| if x.is_finite() { *x } else { 4.0 }).collect())
        }
        (_, numbers) => numbers,
    });
    let [k, v] = caches;
    list(element, products, setting).given("k_cache", k).given("v_cache", v)
}

/// With the only one that reads what comes out, in the order it reads.
fn with_product(dtype: DType, setting: Setting) -> Case {
    let mut case = case(Element::F32, Products::Apart, setting);
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

/// Attention, the way back with a pair of its own, and gates after the branch that is: what is met on the way, and by whom, is the devices'
/// choice. Heads as wide as teams of 8 and of 32 lanes keep them.
fn with_pairs() -> Vec<Case> {
    let mut cases = Vec::new();
    for (width, rank, position, products, element) in [
        (64, 16, 290, Products::Apart, Element::F32),
        (64, 4, 0, Products::Stacked, Element::F16),
        (128, 20, 999, Products::Shared, Element::F32),
        (128, 64, 300, Products::Apart, Element::F32),
        (128, 100, 999, Products::Stacked, Element::F32),
        (128, 20, 300, Products::HalfStacked, Element::Q8),
        (256, 16, 511, Products::Stacked, Element::F16),
        (256, 20, 5, Products::Shared, Element::F16),
        (256, 64, 999, Products::KeysAreValues, Element::F32),
        (512, 4, 0, Products::Shared, Element::F32),
        (512, 16, 640, Products::Stacked, Element::F16),
        (512, 100, 700, Products::Apart, Element::F32),
    ] {
        let setting = Setting::new(1, (8, 1), width).cache(1000, None).at(position, 1);
        let attention = case(element, products, setting);
        let tolerance = match element {
            // As of attention alone, through two more products.
            Element::F16 => Tolerance { steps: 32.0, ..Tolerance::EXPONENTIAL.half() },
            Element::Q8 => Tolerance { unit: 1.0 / 256.0, steps: 16.0, ..Tolerance::EXPONENTIAL },
            _ => Tolerance::EXPONENTIAL.terms(8 * width * setting.slots),
        };
        let pair = with_pair(attention, setting, (rank, DType::F32, 8));
        cases.push(pair.tolerance(tolerance));
    }
    for (heads, dtype, ahead) in [((4, 4), DType::F16, 0), ((6, 2), DType::F16, 4)] {
        let setting = Setting::new(1, heads, 64).cache(1000, Some(600)).at(1001, 1);
        let attention = case(Element::F32, Products::Apart, setting);
        cases.push(with_pair(attention, setting, (16, dtype, ahead)));
    }
    // No workgroup meets factors of several tokens, or of long caches.
    for setting in [
        Setting::new(2, (8, 2), 64).cache(300, None).at(200, 2),
        Setting::new(1, (8, 1), 64).cache(1500, None).at(1400, 1),
    ] {
        let attention = case(Element::F32, Products::Apart, setting);
        cases.push(with_pair(attention, setting, (16, DType::F32, 8)));
    }
    cases
}

/// A pair of such a rank, its first factor so stored, beside the way back from heads; so many rows are met ahead for the gates.
fn with_pair(
    mut case: Case,
    setting: Setting,
    (rank, dtype, ahead): (usize, DType, usize),
) -> Case {
    const STREAM: usize = 96;
    let (t, width) = (setting.t, setting.heads.0 * setting.width);
    let attention = case.build;
    case.name = format!("{}, back with {} of rank {rank}, ahead {ahead}", case.name, dtype.name());
    case.build = Box::new(move |g: &mut Graph| {
        let mut results = attention(g);
        let h = g.input("h", Type::f32([t, STREAM]));
        let norm = |g: &mut Graph, name: &str| g.weight(name, Type::weight(DType::F32, [STREAM]));
        let (post, next) = (norm(g, "post"), norm(g, "next"));
        let back = g.weight("back", Type::weight(DType::Q8_0, [STREAM, width]));
        let own = g.weight("own", Type::weight(dtype, [rank + ahead, width]));
        let low = Some(g.weight("own_b", Type::weight(DType::F16, [rank, STREAM])));
        let branch = match ahead {
            0 => g.product_beside(results[0], back, own),
            _ => {
                let p = g.weight("p", Type::weight(dtype, [ahead, STREAM]));
                g.product_ahead(results[0], back, &Ahead { q: own, h, p })
            }
        };
        let branch =
            Branch { residual: h, branch, weight: post, scale: None, low, ahead: 2 * ahead };
        let start = Start::Branch { branch, next: Some(next), eps: EPS };
        let gates = g.weight("gates", Type::weight(DType::Q8_0, [80, STREAM]));
        let (h1, y) = g.product(&start, gates, &Finish::Geglu);
        results[0] = y;
        results.extend(h1);
        results
    });
    case.tolerance(Tolerance::EXPONENTIAL.terms(width * setting.slots))
}

fn list(element: Element, products: Products, setting: Setting) -> Case {
    let Setting { t, heads: (heads, kv_heads), width, slots, window, position, count } = setting;
    let build = move |g: &mut Graph| {
        let (q, kv) = raw(g, products, t, (heads * width, kv_heads * width));
        let cache = Type::cache(element, [slots, kv_heads, width]);
        let norm = Type::weight(DType::F32, [width]);
        let queries = QueryInputs {
            q,
            q_norm: g.weight("q_norm", norm.clone()),
            rope: g.input("rope", Type::f32([t, width / 2, 2])),
            k_cache: g.state("k_cache", cache.clone()),
            v_cache: g.state("v_cache", cache),
        };
        let new_kv = kv.map(|(k, v)| NewKv { k, v, k_norm: g.weight("k_norm", norm) });
        vec![g.attention_qkv(queries, new_kv, window, EPS), queries.k_cache, queries.v_cache]
    };
    let seen = window.map_or("all".into(), |window| format!("window {window}"));
    let name = format!(
        "{element:?} {products:?} {t}x{heads}/{kv_heads}x{width} {seen} of {slots} at {position}+{count}"
    );
    let tolerance = match element {
        // New keys and values next to a rounding border may go either way.
        Element::F16 => Tolerance { steps: 8.0, ..Tolerance::EXPONENTIAL.half() },
        Element::Q8 => Tolerance { unit: 1.0 / 256.0, steps: 8.0, ..Tolerance::EXPONENTIAL },
        _ => Tolerance::EXPONENTIAL.terms(width.max(slots)),
    };
    let table = rope_table(position..position + t as u32, 1e4, width, None);
    Case::new("attention_qkv", name, build)
        .step(position, count)
        .given("rope", Data::F32(table))
        .tolerance(tolerance)
}

/// Raw queries, and keys and values where the layer has its own.
fn raw(
    g: &mut Graph,
    products: Products,
    t: usize,
    (q, kv): (usize, usize),
) -> (Slice, Option<(Slice, Slice)>) {
    let mut rows = |name: &str, width: usize| g.input(name, Type::f32([t, width]));
    match products {
        Products::Shared => (rows("q", q).into(), None),
        Products::Apart => {
            (rows("q", q).into(), Some((rows("k", kv).into(), rows("v", kv).into())))
        }
        Products::KeysAreValues => {
            let k = rows("k", kv).into();
            (rows("q", q).into(), Some((k, k)))
        }
        Products::Stacked => {
            let all = rows("qkv", q + 2 * kv);
            let (k, v) = (Slice::new(all, q, kv), Slice::new(all, q + kv, kv));
            (Slice::new(all, 0, q), Some((k, v)))
        }
        Products::HalfStacked => {
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
        (Products::Stacked, sliding(1, 8191)),
        (Products::Shared, sliding(1, 8191)),
        (Products::Stacked, sliding(4, 8191)),
        (Products::Stacked, global(1, 0)),
        (Products::Stacked, global(1, 511)),
        (Products::Stacked, global(1, 8191)),
        (Products::Shared, global(1, 8191)),
    ];
    lists
        .into_iter()
        .map(|(products, setting)| list(Element::F16, products, setting).bench())
        .collect()
}
