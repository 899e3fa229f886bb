//! The debug mode of the op suite: every case with kernels that count accesses beyond their memory and divisions by zero. There are none.
//!
//! Natively kernels run without wgpu's checks where the API bounds accesses (decision 0004); this shows that nothing depends on it.

#[path = "kernels/instrument.rs"]
mod instrument;
mod kernels;

use std::collections::{HashMap, HashSet};

use instrument::{BUFFER, DIVISOR, FIXED, MADE, instrument};
use pollster::block_on;
use rullama_engine::{
    gpu::{DeviceFacts, Gpu, GpuPlan, Weights},
    graph::{Element, Graph, Step, Type},
    ops::{Epilogue, Mixture, Prologue},
    suite::{Verdict, cases, most_workgroups, plays, run},
};
use rullama_gguf::DType;

/// The fastest adapter, with instrumented kernels.
fn device() -> Gpu {
    let adapters = block_on(Gpu::all()).expect("adapters give devices");
    let gpu = adapters.into_iter().max_by_key(most_workgroups);
    let gpu = gpu.expect("no WebGPU adapter: `cargo xtask setup` installs a software one");
    block_on(gpu.instrument(instrument)).expect("memory for four counters");
    gpu
}

/// Accesses of buffers and of fixed sizes, and divisions, that were wrong; there must have been kernels.
fn wrong(gpu: &Gpu) -> [u32; 3] {
    let counted = block_on(gpu.counted()).expect("the device answers");
    assert!(counted[MADE] > 0, "nothing was counted");
    [counted[BUFFER], counted[FIXED], counted[DIVISOR]]
}

/// Every case that brings a part to a kernel that no earlier one brought to it, on the device and on the lesser ones it plays. Instrumented kernels take long
/// to compile, and large cases long to run: other shapes and combinations of the same parts are the suite's own affair.
#[test]
fn no_case_leaves_its_memory() {
    let gpu = device();
    let cases = cases();
    let mut seen = HashSet::new();
    for (play, gpu) in plays(&gpu) {
        for case in cases.iter().filter(|case| !case.bench) {
            let large = case.workgroups(gpu.facts()) > MOST_WORKGROUPS;
            let dispatches = if large { Vec::new() } else { case.dispatches(gpu.facts()) };
            let parts = dispatches.iter().flat_map(|(label, ..)| parts(label));
            if parts.filter(|part| seen.insert(part.clone())).count() == 0 {
                continue;
            }
            match block_on(run(case, &gpu)) {
                Verdict::Passed | Verdict::Skipped { .. } => {}
                Verdict::Failed(failure) => panic!("{play}: {} {}: {failure}", case.op, case.name),
            }
            assert_eq!(wrong(&gpu), [0; 3], "{play}: {} {}", case.op, case.name);
        }
    }
}

/// Workgroups of a case, at most.
const MOST_WORKGROUPS: u64 = 2000;

/// A kernel with each of its parts, without the values of its constants.
fn parts(label: &str) -> impl Iterator<Item = String> {
    let mut words = label.split(' ').filter(|word| !word.contains('='));
    let kernel = words.next().unwrap_or_default().to_owned();
    words.map(move |part| format!("{kernel} {part}"))
}

/// Text of a kernel that does as wrong as its constant says.
const WRONG: &str = "
override BEYOND: u32 = 0u;
override DIVISOR: u32 = 1u;
var<workgroup> shared_words: array<u32, 8>;
@group(0) @binding(2) var<storage, read> x: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<u32>;
fn at(i: u32) -> u32 { return x[i + BEYOND]; }
@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) lane: u32) {
    shared_words[lane + BEYOND] = at(lane);
    workgroupBarrier();
    y[lane] = shared_words[lane] / (lane + DIVISOR);
}
";

/// Instrumented text has a check for each kind of wrong: of a buffer inside a function, of workgroup memory, of a divisor.
#[test]
fn each_kind_of_access_is_instrumented() {
    let text = instrument(WRONG, &[("BEYOND", 3.0), ("DIVISOR", 0.0)], 4);
    assert!(text.contains("arrayLength((&x))"), "{text}");
    assert!(text.contains("arrayLength((&y))"), "{text}");
    let adds = text.matches("atomicAdd((&naga_counters").count();
    // x, y, two of workgroup memory, a divisor, and the lanes.
    assert_eq!(adds, 6, "{text}");
    assert!(!text.contains("override"), "{text}");
}

/// Kernels that are wrong on purpose, each in another way, are counted on the device, once for each of eight lanes.
#[test]
fn wrong_kernels_are_counted() {
    let few = "var few = array<f32, 4>(); y[i] = few[i];";
    for (right, wrong_text, expected) in [
        ("a[i]", "a[i]", [0, 0, 0]),
        ("a[i]", "a[i + 1000u]", [8, 0, 0]),
        ("y[i] =", "y[i + 1000u] =", [8, 0, 0]),
        ("y[i] = a[i] + b[i];", few, [0, 4, 0]),
        ("if i < p.len {", "if i < p.len && 8u / (p.len - 8u) < 9u {", [0, 0, 8]),
    ] {
        let adapters = block_on(Gpu::all()).expect("adapters give devices");
        let gpu = adapters.into_iter().max_by_key(most_workgroups).expect("an adapter");
        let harmful = move |text: &str, constants: &[(&'static str, f64)], binding: u32| {
            assert!(text.contains(right), "{text}");
            instrument(&text.replace(right, wrong_text), constants, binding)
        };
        block_on(gpu.instrument(harmful)).expect("memory for four counters");
        let mut graph = Graph::new();
        let (a, b) = (graph.input("a", Type::f32([8])), graph.input("b", Type::f32([8])));
        let sum = graph.add(a, b);
        graph.keep(sum);
        let weights = Weights::new(&gpu);
        let plan = block_on(GpuPlan::new(graph, &weights, &mut HashMap::new())).expect("a plan");
        plan.run(&Step { count: 1, ..Step::default() }).expect("it runs");
        assert_eq!(wrong(&gpu), expected, "{wrong_text}");
    }
}

/// Ids of experts that no router makes stay inside the weight and the results, in every kernel that looks rows up by them.
#[test]
fn expert_ids_are_clamped() {
    let gpu = device();
    for tokens in [1, 3, 80] {
        for (play, gpu) in plays(&gpu) {
            let (width, rows, experts, chosen) = (64, 32, 4, 2);
            let mut g = Graph::new();
            let h = g.input("h", Type::f32([tokens, width]));
            let norm = g.weight("norm", Type::weight(DType::F32, [width]));
            let ids = g.input("ids", Type::u32([tokens, chosen]));
            let shares = g.input("shares", Type::f32([tokens, chosen]));
            let routes = g.routes(ids, experts);
            let up = g.weight("up", Type::weight(DType::Q8_0, [experts, 2 * rows, width]));
            let prologue = Prologue::Norm { h, weight: norm, eps: 1e-6 };
            let each = Mixture { routes, shares: None };
            let inner = g.fused_linear_experts(&prologue, up, &each, &Epilogue::Geglu).1;
            let down = g.weight("down", Type::weight(DType::Q8_0, [experts, width, rows]));
            let sum = Mixture { routes, shares: Some(shares) };
            let y = g.fused_linear_experts(&Prologue::Rows(inner), down, &sum, &Epilogue::Plain).1;
            g.keep(y);
            let mut weights = Weights::new(&gpu);
            for (_, info) in g.values() {
                if let (Some(name), Element::Weight(dtype)) =
                    (info.origin.weight_name(), info.ty.element)
                {
                    block_on(weights.reserve(&name, dtype, &info.ty.shape)).expect("room");
                }
            }
            let plan = block_on(GpuPlan::new(g, &weights, &mut HashMap::new())).expect("a plan");
            for wild in [u32::MAX, 4, 1 << 20] {
                plan.write("ids", bytemuck::cast_slice(&vec![wild; tokens * chosen]));
                plan.poison();
                let step = Step { count: tokens as u32, ..Step::default() };
                plan.run(&step).expect("it runs");
                assert_eq!(wrong(&gpu), [0; 3], "{play}: {tokens} tokens, expert {wild}");
            }
        }
    }
}

/// The least device is among those that are played, so that every form of every kernel is counted somewhere.
#[test]
fn lesser_devices_are_played() {
    let gpu = device();
    let floor = DeviceFacts::floor();
    assert!(
        plays(&gpu).iter().any(|(_, gpu)| gpu.facts().workgroup_bytes == floor.workgroup_bytes)
    );
}
