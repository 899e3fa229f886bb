use crate::{
    cpu::Data,
    graph::{Element, Graph, Type},
    suite::{Case, Tolerance},
};

/// What tells a case apart.
#[derive(Debug, Clone, Copy)]
struct Setting {
    t: usize,
    heads: (usize, usize),
    width: usize,
    slots: usize,
    window: Option<u32>,
    position: u32,
    count: u32,
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (i, setting) in settings().into_iter().enumerate() {
        let elements = [Element::F32, Element::F16, Element::Q8];
        let element = elements[i % 3];
        let element = if setting.width % 32 == 0 { element } else { elements[i % 2] };
        cases.push(case(element, setting));
    }
    cases.push(one_key());
    cases.extend(benches());
    cases
}

fn settings() -> Vec<Setting> {
    let mut settings = Vec::new();
    // Every width, both kernels, first token and later ones.
    for width in [16, 32, 48, 64, 128, 256, 512] {
        settings.push(setting(1, (4, 1), width, 40, None, 5, 1));
        settings.push(setting(17, (4, 1), width, 40, None, 3, 17));
    }
    // Split over several workgroups, few and all of them alive.
    settings.push(setting(1, (8, 2), 64, 700, None, 0, 1));
    settings.push(setting(1, (8, 2), 64, 700, None, 65, 1));
    settings.push(setting(1, (8, 2), 64, 700, None, 699, 1));
    settings.push(setting(3, (4, 1), 256, 300, None, 290, 3));
    settings.push(setting(5, (1, 1), 32, 300, None, 200, 4));
    settings.push(setting(1, (9, 1), 32, 257, None, 256, 1));
    // Windows: not yet full, just full, past it, ring wrapped once and many times.
    for position in [0, 6, 7, 8, 30, 1001] {
        settings.push(setting(1, (8, 2), 32, 8, Some(8), position, 1));
        settings.push(setting(3, (4, 1), 32, 10, Some(8), position, 3));
    }
    settings.push(setting(1, (8, 2), 64, 300, Some(290), 262_143, 1));
    settings.push(setting(4, (1, 1), 64, 300, Some(290), 1500, 3));
    settings.push(setting(17, (4, 1), 32, 24, Some(8), 1001, 17));
    settings.push(setting(65, (8, 2), 16, 72, Some(8), 50, 65));
    settings.push(setting(65, (1, 1), 64, 164, Some(100), 5000, 65));
    settings.push(setting(65, (4, 1), 64, 200, None, 100, 65));
    // Chunks that are not full.
    settings.push(setting(65, (8, 2), 32, 200, None, 100, 3));
    settings.push(setting(65, (1, 1), 128, 164, Some(100), 150, 40));
    settings.push(setting(17, (8, 2), 32, 30, Some(4), 5, 1));
    settings.push(setting(3, (8, 2), 32, 300, None, 5, 2));
    settings
}

fn setting(
    t: usize,
    heads: (usize, usize),
    width: usize,
    slots: usize,
    window: Option<u32>,
    position: u32,
    count: u32,
) -> Setting {
    Setting { t, heads, width, slots, window, position, count }
}

fn case(element: Element, setting: Setting) -> Case {
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
        .given("k", cache(setting, 17))
        .given("v", cache(setting, 40))
        .tolerance(Tolerance::EXPONENTIAL.terms(width))
}

/// Numbers of a cache: infinite where no position has been written, so that a kernel that touches them is found out.
fn cache(setting: Setting, salt: usize) -> Data {
    let row = setting.heads.1 * setting.width;
    let written = (setting.position + setting.count) as usize;
    let number = |i: usize| {
        if i / row >= written {
            return f32::INFINITY;
        }
        // Small steps of an odd size over an odd range: no two neighbours, slots or heads alike.
        ((i * (salt * 2 + 1) + i / 7) % 1009) as f32 / 1009.0 - 0.5
    };
    Data::F32((0..setting.slots * row).map(number).collect())
}

/// One visible key: its value comes out whatever the score is.
fn one_key() -> Case {
    let v: Vec<f32> = (0..16).map(|i| i as f32).collect();
    case(Element::F32, setting(1, (1, 1), 16, 1, None, 0, 1))
        .given("v", Data::F32(v.clone()))
        .gives(&v)
}

/// Shapes of E2B.
fn benches() -> Vec<Case> {
    let sliding = |t, position| setting(t, (8, 1), 256, 511 + t, Some(512), position, t as u32);
    let global = |t, position| setting(t, (8, 1), 512, 8192, None, position, t as u32);
    let settings = [sliding(1, 8191), global(1, 8191), sliding(512, 7680), global(512, 7680)];
    settings.into_iter().map(|setting| case(Element::F16, setting).bench()).collect()
}
