//! The op suite with instrumented kernels, which count out-of-bounds accesses and divisions by zero. There must be none.
//!
//! Natively kernels run without wgpu's checks if the API bounds accesses (decision 0004); this test shows that no kernel depends on it.

#[path = "kernels/instrument.rs"]
mod instrument;
mod kernels;

use std::collections::{HashMap, HashSet};

use instrument::{BUFFER, DIVISOR, FIXED, LANES, instrument};
use pollster::block_on;
use rullama_engine::{
    gpu::{DeviceFacts, Gpu, GpuPlan, Weights},
    graph::{Element, Graph, Step, Type},
    ops::{Epilogue, Mixture, Prologue},
    suite::{Verdict, cases, feature_levels, most_workgroups, run},
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

/// Numbers of out-of-bounds accesses to buffers and to arrays of fixed size, and of divisions by zero; some kernel must have run.
fn faults(gpu: &Gpu) -> [u32; 3] {
    let counted = block_on(gpu.counted()).expect("the device responds");
    assert!(counted[LANES] > 0, "nothing was counted");
    [counted[BUFFER], counted[FIXED], counted[DIVISOR]]
}

/// Every case with a combination of kernel and part that no earlier case had, at every feature level the device can emulate. Instrumented kernels are slow to
/// compile and large cases slow to run, so other shapes and combinations of the same parts are left to the suite.
#[test]
fn no_case_accesses_memory_out_of_bounds() {
    let gpu = device();
    let cases = cases();
    let mut seen = HashSet::new();
    for (level, gpu) in feature_levels(&gpu) {
        for case in cases.iter().filter(|case| !case.bench) {
            let large = case.workgroups(gpu.facts()) > MAX_WORKGROUPS;
            let dispatches = if large { Vec::new() } else { case.dispatches(gpu.facts()) };
            let parts = dispatches.iter().flat_map(|(label, ..)| parts(label));
            if parts.filter(|part| seen.insert(part.clone())).count() == 0 {
                continue;
            }
            match block_on(run(case, &gpu)) {
                Verdict::Passed | Verdict::Skipped { .. } => {}
                Verdict::Failed(failure) => panic!("{level}: {} {}: {failure}", case.op, case.name),
            }
            assert_eq!(faults(&gpu), [0; 3], "{level}: {} {}", case.op, case.name);
        }
    }
}

/// Maximum workgroups of a case.
const MAX_WORKGROUPS: u64 = 2000;

/// A kernel with each of its parts, without the values of its constants.
fn parts(label: &str) -> impl Iterator<Item = String> {
    let mut words = label.split(' ').filter(|word| !word.contains('='));
    let kernel = words.next().unwrap_or_default().to_owned();
    words.map(move |part| format!("{kernel} {part}"))
}

/// A kernel whose constants cause faults.
const FAULTY: &str = "
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

/// Instrumented text has a check for each kind of fault: of a buffer inside a function, of workgroup memory, of a divisor.
#[test]
fn each_kind_of_access_is_instrumented() {
    let text = instrument(FAULTY, &[("BEYOND", 3.0), ("DIVISOR", 0.0)], 4);
    assert!(text.contains("arrayLength((&x))"), "{text}");
    assert!(text.contains("arrayLength((&y))"), "{text}");
    let adds = text.matches("atomicAdd((&naga_counters").count();
    // x, y, twice workgroup memory, a divisor, and the lanes.
    assert_eq!(adds, 6, "{text}");
    assert!(!text.contains("override"), "{text}");
}

/// Kernels with deliberate faults of each kind are counted on the device, once for each of eight lanes.
#[test]
fn faults_are_counted() {
    let small_array = "var small = array<f32, 4>(); y[i] = small[i];";
    for (right, faulty, expected) in [
        ("a[i]", "a[i]", [0, 0, 0]),
        ("a[i]", "a[i + 1000u]", [8, 0, 0]),
        ("y[i] =", "y[i + 1000u] =", [8, 0, 0]),
        ("y[i] = a[i] + b[i];", small_array, [0, 4, 0]),
        ("if i < p.len {", "if i < p.len && 8u / (p.len - 8u) < 9u {", [0, 0, 8]),
    ] {
        let adapters = block_on(Gpu::all()).expect("adapters give devices");
        let gpu = adapters.into_iter().max_by_key(most_workgroups).expect("an adapter");
        let with_fault = move |text: &str, constants: &[(&'static str, f64)], binding: u32| {
            assert!(text.contains(right), "{text}");
            instrument(&text.replace(right, faulty), constants, binding)
        };
        block_on(gpu.instrument(with_fault)).expect("memory for four counters");
        let mut graph = Graph::new();
        let (a, b) = (graph.input("a", Type::f32([8])), graph.input("b", Type::f32([8])));
        let sum = graph.add(a, b);
        graph.keep(sum);
        let weights = Weights::new(&gpu);
        let plan = block_on(GpuPlan::new(graph, &weights, &mut HashMap::new())).expect("a plan");
        plan.run(&Step { count: 1, ..Step::default() }).expect("it runs");
        assert_eq!(faults(&gpu), expected, "{faulty}");
    }
}

/// Expert ids that no router produces stay inside the weight and the results, in every kernel that looks rows up by them.
#[test]
fn expert_ids_are_clamped() {
    let gpu = device();
    for tokens in [1, 3, 80] {
        for (level, gpu) in feature_levels(&gpu) {
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
            let inner = g.fused_linear_experts(&prologue, up, &each, &Epilogue::GEGLU).1;
            let down = g.weight("down", Type::weight(DType::Q8_0, [experts, width, rows]));
            let sum = Mixture { routes, shares: Some(shares) };
            let y = g.fused_linear_experts(&Prologue::Rows(inner), down, &sum, &Epilogue::Plain).1;
            g.keep(y);
            let mut weights = Weights::new(&gpu);
            for (_, info) in g.values() {
                if let (Some(name), Element::Weight(dtype)) =
                    (info.origin.weight_name(), info.ty.element)
                {
                    block_on(weights.reserve(&name, dtype, &info.ty.shape)).expect("memory");
                }
            }
            let plan = block_on(GpuPlan::new(g, &weights, &mut HashMap::new())).expect("a plan");
            for invalid in [u32::MAX, 4, 1 << 20] {
                plan.write("ids", bytemuck::cast_slice(&vec![invalid; tokens * chosen]));
                plan.poison();
                let step = Step { count: tokens as u32, ..Step::default() };
                plan.run(&step).expect("it runs");
                assert_eq!(faults(&gpu), [0; 3], "{level}: {tokens} tokens, expert {invalid}");
            }
        }
    }
}

/// The floor is among the levels, so that every form of every kernel is counted somewhere.
#[test]
fn the_floor_is_among_the_levels() {
    let gpu = device();
    let floor = DeviceFacts::floor();
    assert!(
        feature_levels(&gpu)
            .iter()
            .any(|(_, gpu)| gpu.facts().workgroup_bytes == floor.workgroup_bytes)
    );
}
