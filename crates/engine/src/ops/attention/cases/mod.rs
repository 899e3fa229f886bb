//! Cases of the op suite: causal and block masks over KV caches, and training.

pub(crate) mod bidirectional;
pub(crate) mod packed;
mod paged;
mod qkv;

use super::{AttentionGrad, AttentionTrain};
use crate::{
    cpu::Data,
    graph::{Element, Graph, Type},
    suite::{Case, Tolerance},
};

/// The sizes of a case.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    pub(super) t: usize,
    pub(super) heads: (usize, usize),
    pub(super) width: usize,
    pub(super) slots: usize,
    pub(super) window: Option<u32>,
    pub(super) position: u32,
    pub(super) count: u32,
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    // Every head width and cache precision, both kernels.
    for (width, element) in [
        (16, Element::F32),
        (32, Element::Q8),
        (48, Element::F16),
        (128, Element::F32),
        (256, Element::F16),
        (512, Element::Q8),
    ] {
        cases.push(case(element, Setting::new(1, (4, 1), width).cache(40, None).at(5, 1)));
        cases.push(case(element, Setting::new(17, (4, 1), width).cache(40, None).at(3, 17)));
    }
    cases.extend(settings().into_iter().map(|setting| case(Element::F16, setting)));
    cases.push(one_key());
    cases.extend(blocks());
    cases.extend(training());
    cases.extend(qkv::cases());
    cases.extend(paged::cases());
    cases.extend(benches());
    cases
}

/// For queries and keys of random values from -1 to 1.
pub(super) fn score_tolerance(width: usize, terms: usize) -> Tolerance {
    Tolerance::EXPONENTIAL.terms(terms).scores((width as f32).sqrt() / 3.0)
}

fn settings() -> Vec<Setting> {
    // Compiling a kernel takes a second on software adapters: most settings share kernels.
    let width_64 = |t, heads, slots, window, position, count| {
        Setting::new(t, heads, 64).cache(slots, window).at(position, count)
    };
    let mut settings = vec![
        // Split over several workgroups, some or all of them with live keys.
        width_64(1, (8, 2), 700, None, 0, 1),
        width_64(1, (8, 2), 700, None, 65, 1),
        width_64(1, (8, 2), 700, None, 699, 1),
        width_64(3, (4, 1), 300, None, 290, 3),
        width_64(5, (1, 1), 300, None, 200, 4),
        width_64(1, (9, 1), 257, None, 256, 1),
        // Ring buffers that have wrapped, once and many times.
        width_64(1, (8, 2), 300, Some(290), 262_143, 1),
        width_64(4, (1, 1), 300, Some(290), 1500, 3),
        width_64(17, (4, 1), 24, Some(8), 1001, 17),
        width_64(65, (8, 2), 72, Some(8), 50, 65),
        width_64(65, (1, 1), 164, Some(100), 5000, 65),
        width_64(65, (4, 1), 200, None, 100, 65),
        width_64(65, (4, 1), 65, None, 0, 65),
        // Partially filled chunks.
        width_64(65, (8, 2), 200, None, 100, 3),
        width_64(65, (1, 1), 164, Some(100), 150, 40),
        width_64(17, (8, 2), 30, Some(4), 5, 1),
        width_64(3, (8, 2), 300, None, 5, 2),
    ];
    // Windows: not yet full, just full, exceeded.
    for position in [0, 6, 7, 8, 30, 1001] {
        settings.push(width_64(1, (8, 2), 8, Some(8), position, 1));
        settings.push(width_64(3, (4, 1), 10, Some(8), position, 3));
    }
    settings
}

impl Setting {
    /// Tokens, heads and kv heads, and the head width.
    fn new(t: usize, heads: (usize, usize), width: usize) -> Self {
        Self { t, heads, width, slots: t, window: None, position: 0, count: t as u32 }
    }

    /// With this number of slots in the KV caches.
    fn cache(self, slots: usize, window: Option<u32>) -> Self {
        Self { slots, window, ..self }
    }

    /// With `count` live tokens from `position` on.
    fn at(self, position: u32, count: u32) -> Self {
        Self { position, count, ..self }
    }
}

fn case(element: Element, setting: Setting) -> Case {
    graph(element, setting).given("k", cache(setting, 17)).given("v", cache(setting, 40))
}

fn graph(element: Element, setting: Setting) -> Case {
    let Setting { t, heads: (heads, kv_heads), width, slots, window, position, count } = setting;
    let build = move |g: &mut Graph| {
        let q = g.input("q", Type::f32([t, heads, width]));
        let cache = Type::cache(element, [slots, kv_heads, width]);
        let (k, v) = (g.state("k", cache.clone()), g.state("v", cache));
        vec![g.attention(q, k, v, window)]
    };
    let seen = window.map_or("all".into(), |window| format!("window {window}"));
    let name = format!(
        "{element:?} {t}x{heads}/{kv_heads}x{width} {seen} of {slots} at {position}+{count}"
    );
    Case::new("attention", name, build)
        .step(position, count)
        .tolerance(score_tolerance(width, width.max(slots)))
}

/// A cache's values: infinite where no position has been written, so that a kernel that reads them fails the case.
pub(super) fn cache(setting: Setting, salt: usize) -> Data {
    let row = setting.heads.1 * setting.width;
    let written = (setting.position + setting.count) as usize;
    let number = |i: usize| {
        if i / row >= written {
            return f32::INFINITY;
        }
        // Small odd steps over an odd range: adjacent elements, slots and heads differ.
        ((i * (salt * 2 + 1) + i / 7) % 1009) as f32 / 1009.0 - 0.5
    };
    Data::F32((0..setting.slots * row).map(number).collect())
}

/// One visible key: the output is its value, whatever the score.
fn one_key() -> Case {
    let v: Vec<f32> = (0..16).map(|i| i as f32).collect();
    case(Element::F32, Setting::new(1, (1, 1), 16).cache(1, None).at(0, 1))
        .given("v", Data::F32(v.clone()))
        .gives(&v)
}

/// Tokens of blocks: in the middle of a chunk, at its ends, two adjacent blocks, one longer than the window, and one that ends after the
/// chunk.
fn blocks() -> Vec<Case> {
    let chunk = |t, heads, window: u32, position, count| {
        Setting::new(t, heads, 64).cache(window as usize + t - 1, Some(window)).at(position, count)
    };
    let lists: [(Setting, &[(usize, usize)]); 6] = [
        (chunk(17, (4, 1), 8, 1001, 17), &[(3, 9)]),
        (chunk(17, (4, 1), 8, 0, 17), &[(0, 17)]),
        (chunk(65, (8, 2), 40, 50, 65), &[(0, 20), (20, 41), (63, 65)]),
        (chunk(65, (1, 1), 16, 5000, 65), &[(10, 60)]),
        (chunk(65, (8, 2), 100, 7, 30), &[(20, 40)]),
        (chunk(3, (4, 1), 8, 30, 3), &[(1, 3)]),
    ];
    let lists = lists.into_iter().map(|(setting, ranges)| blocked(setting, ranges));
    lists.chain([equal_keys()]).collect()
}

/// Equal keys: two tokens of a block see the mean of both values, the next token that of the last two.
fn equal_keys() -> Case {
    let v: Vec<f32> = (0..4 * 16).map(|i| (i / 16) as f32).collect();
    let want: Vec<f32> = (0..3 * 16).map(|i| [0.5, 0.5, 1.5][i / 16]).collect();
    blocked(Setting::new(3, (1, 1), 16).cache(4, Some(2)).at(0, 3), &[(0, 2)])
        .given("k", Data::F32(vec![0.0; 4 * 16]))
        .given("v", Data::F32(v))
        .gives(&want)
}

fn blocked(setting: Setting, ranges: &[(usize, usize)]) -> Case {
    let Setting { t, heads: (heads, kv_heads), width, slots, window, position, count } = setting;
    let build = move |g: &mut Graph| {
        let q = g.input("q", Type::f32([t, heads, width]));
        let cache = Type::cache(Element::F16, [slots, kv_heads, width]);
        let (k, v) = (g.state("k", cache.clone()), g.state("v", cache));
        let blocks = g.input("blocks", Type::u32([t]));
        vec![g.attention_block(q, (k, v), window.expect("cases with blocks have one"), blocks)]
    };
    let inside = |token: usize, (first, end): (usize, usize)| (first..end).contains(&token);
    let end = |token| ranges.iter().find(|range| inside(token, **range)).map_or(0, |range| range.1);
    let ends = (0..t).map(end).map(|end| if end == 0 { 0 } else { position + end as u32 });
    let name = format!(
        "blocks {ranges:?} {t}x{heads}/{kv_heads}x{width} {window:?} of {slots} at {position}+{count}"
    );
    Case::new("attention", name, build)
        .step(position, count)
        .given("k", cache(setting, 17))
        .given("v", cache(setting, 40))
        .given("blocks", Data::U32(ends.collect()))
        .tolerance(score_tolerance(width, width))
}

/// Shapes of E2B, a draft of four tokens, and 26B; long caches at several depths.
fn benches() -> Vec<Case> {
    let sliding =
        |t, position| Setting::new(t, (8, 1), 256).cache(511 + t, Some(512)).at(position, t as u32);
    let global =
        |t, position| Setting::new(t, (8, 1), 512).cache(32_768, None).at(position, t as u32);
    let settings = [
        sliding(1, 8191),
        sliding(4, 8191),
        global(1, 0),
        global(1, 511),
        global(1, 8191),
        global(4, 8191),
        global(1, 32_767),
        Setting::new(1, (16, 8), 256).cache(1024, Some(1024)).at(8191, 1),
        Setting::new(1, (16, 2), 512).cache(32_768, None).at(8191, 1),
        sliding(512, 7680),
        global(512, 7680),
    ];
    // Random values suffice, and are generated only when timed.
    settings.into_iter().map(|setting| graph(Element::F16, setting).bench()).collect()
}

fn training() -> Vec<Case> {
    let mut cases = vec![
        train(1, (2, 1), 16, None),
        train(5, (4, 2), 16, None).gradient(),
        train(7, (2, 1), 16, Some(3)).gradient(),
        train(40, (2, 1), 16, None).gradient(),
    ];
    for (t, heads, width, window) in [
        (2, (1, 1), 16, None),
        (3, (4, 1), 16, None),
        (17, (8, 2), 64, Some(4)),
        (65, (4, 1), 64, None),
        (65, (2, 2), 64, Some(20)),
        (130, (8, 1), 64, Some(70)),
        (9, (2, 1), 512, None),
    ] {
        cases.push(train(t, heads, width, window));
        cases.push(train_back(t, heads, width, window));
    }
    cases.push(train_back(512, (8, 1), 256, Some(512)).bench());
    // Several packed sequences.
    let packed = |case: Case, t: usize, each: usize| {
        let mut case = case.given("starts", starts(t, each));
        case.name = format!("{} by {each}", case.name);
        case
    };
    cases.push(packed(train(9, (2, 1), 16, Some(3)), 9, 4).gradient());
    for (t, each, window) in [(65, 20, None), (130, 50, Some(40))] {
        cases.push(packed(train(t, (4, 1), 64, window), t, each));
        cases.push(packed(train_back(t, (4, 1), 64, window), t, each));
    }
    cases
}

/// The first positions of sequences of `each` tokens; 0: one sequence of all tokens.
fn starts(t: usize, each: usize) -> Data {
    let first = |token: usize| token.checked_div(each).map_or(0, |before| before * each);
    Data::U32((0..t).map(|token| first(token) as u32).collect())
}

fn train(t: usize, (heads, kv_heads): (usize, usize), width: usize, window: Option<u32>) -> Case {
    let build = move |g: &mut Graph| {
        let q = g.input("q", Type::f32([t, heads, width]));
        let k = g.input("k", Type::f32([t, kv_heads, width]));
        let v = g.input("v", Type::f32([t, kv_heads, width]));
        let starts = g.input("starts", Type::u32([t]));
        g.apply_all(AttentionTrain { window }, &[q, k, v, starts])
    };
    Case::new("attention", format!("train {t}x{heads}/{kv_heads}x{width} {window:?}"), build)
        // All tokens are live, whatever the step says.
        .step(11, 1)
        .given("starts", starts(t, 0))
        .tolerance(score_tolerance(width, width))
}

/// The gradient's kernels; the cases with `.gradient()` check their results.
fn train_back(t: usize, heads: (usize, usize), width: usize, window: Option<u32>) -> Case {
    let build = move |g: &mut Graph| {
        let q = g.input("q", Type::f32([t, heads.0, width]));
        let k = g.input("k", Type::f32([t, heads.1, width]));
        let v = g.input("v", Type::f32([t, heads.1, width]));
        let dy = g.input("dy", Type::f32([t, heads.0 * width]));
        let starts = g.input("starts", Type::u32([t]));
        let made = g.apply_all(AttentionTrain { window }, &[q, k, v, starts]);
        g.apply_all(AttentionGrad { window }, &[q, k, v, starts, made[0], made[1], dy])
    };
    // Small scores: if one weight is nearly 1, the gradient of its score suffers from cancellation.
    let q = (0..t * heads.0 * width).map(|i| ((i * 37 + i / 5) % 1009) as f32 / 4036.0 - 0.125);
    Case::new("attention", format!("back {t}x{heads:?}x{width} {window:?}"), build)
        .step(11, 1)
        .given("starts", starts(t, 0))
        .given("q", Data::F32(q.collect()))
        .tolerance(score_tolerance(width, width.max(t)))
}
