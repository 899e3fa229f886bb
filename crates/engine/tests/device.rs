//! Device loss, running out of memory, and rejected kernels.

use std::{any::Any, cell::RefCell, collections::HashMap, rc::Rc};

use rullama_engine::{
    EngineError,
    cpu::{CpuCall, Data},
    gpu::{Dispatch, Gpu, GpuCall, GpuPlan, Kernel, PipelineCompiler, Weights},
    graph::{Element, Graph, Op, Step, Type, Value},
};
use rullama_gguf::DType;

const STEP: Step = Step { position: 0, count: 1, seed: 0, reserved: 0 };

/// Runs a test on every adapter of this machine; there must be one.
fn on_each_gpu(test: impl AsyncFn(Gpu)) {
    pollster::block_on(async {
        let gpus = Gpu::all().await.expect("adapters give devices");
        assert!(!gpus.is_empty(), "no WebGPU adapter: `cargo xtask setup` installs a software one");
        for gpu in gpus {
            test(gpu).await;
        }
    });
}

/// `y = a + b` over three elements.
fn sum_graph() -> (Graph, Value) {
    let mut graph = Graph::new();
    let (a, b) = (graph.input("a", Type::f32([1, 3])), graph.input("b", Type::f32([1, 3])));
    let y = graph.add(a, b);
    graph.keep(y);
    (graph, y)
}

async fn sum(gpu: &Gpu) -> Result<(GpuPlan, Value), EngineError> {
    let (graph, y) = sum_graph();
    let plan = GpuPlan::new(graph, &Weights::new(gpu), &mut HashMap::new()).await?;
    for (name, values) in [("a", [1.0, 2.0, 3.0]), ("b", [0.5, -2.0, 1.0])] {
        plan.write_data(name, &Type::f32([1, 3]), &Data::F32(values.into()));
    }
    Ok((plan, y))
}

async fn result(plan: &GpuPlan, y: Value) -> Result<Vec<f32>, EngineError> {
    plan.run(&STEP)?;
    plan.read_any(y).await
}

#[test]
fn a_lost_device_is_an_error_everywhere_and_a_new_one_works() {
    on_each_gpu(async |gpu| {
        let (plan, y) = sum(&gpu).await.expect("the device works");
        assert_eq!(result(&plan, y).await.expect("it still does"), [1.5, 0.0, 4.0]);

        gpu.destroy();
        plan.write_data("a", &Type::f32([1, 3]), &Data::F32(vec![0.0; 3]));
        assert!(matches!(plan.run(&STEP), Err(EngineError::DeviceLost)));
        assert!(matches!(plan.profile(&STEP).await, Err(EngineError::DeviceLost)));
        assert!(matches!(plan.read(y).await, Err(EngineError::DeviceLost)));
        assert!(matches!(sum(&gpu).await, Err(EngineError::DeviceLost)));
    });
    // The same adapters, opened again.
    on_each_gpu(async |gpu| {
        let (plan, y) = sum(&gpu).await.expect("a new device works");
        assert_eq!(result(&plan, y).await.expect("it runs"), [1.5, 0.0, 4.0]);
    });
}

#[test]
fn loss_between_run_and_read_is_an_error() {
    on_each_gpu(async |gpu| {
        let (plan, y) = sum(&gpu).await.expect("the device works");
        plan.run(&STEP).expect("it runs");
        gpu.destroy();
        assert!(matches!(plan.read(y).await, Err(EngineError::DeviceLost)));
    });
}

#[test]
fn a_buffer_that_is_too_large_is_out_of_memory() {
    on_each_gpu(async |gpu| {
        let elements = usize::try_from(gpu.facts().buffer_bytes / 4 + 4).expect("64 bits here");
        let mut graph = Graph::new();
        let x = graph.input("x", Type::f32([1, elements]));
        graph.add(x, x);
        match GpuPlan::new(graph, &Weights::new(&gpu), &mut HashMap::new()).await {
            Err(EngineError::OutOfMemory { bytes, .. }) => {
                assert!(bytes > gpu.facts().buffer_bytes);
            }
            other => panic!("{other:?}"),
        }
        let (plan, y) = sum(&gpu).await.expect("the device still works");
        assert_eq!(result(&plan, y).await.expect("it runs"), [1.5, 0.0, 4.0]);
    });
}

/// Allocates more than a GPU has, which drivers may accept all the same. A software renderer would take the memory from the machine, which
/// would kill the test.
#[test]
fn a_full_device_reports_it_and_keeps_working() {
    on_each_gpu(async |gpu| {
        if gpu.is_software() {
            return;
        }
        let mut weights = Weights::new(&gpu);
        // Half a tebibyte, split into slabs that the device can bind.
        match weights.reserve("w", DType::F32, &[1 << 17, 1 << 20].into()).await {
            Ok(()) | Err(EngineError::OutOfMemory { .. }) => {}
            other => panic!("{}: {other:?}", gpu.name()),
        }
        drop(weights);
        let (plan, y) = sum(&gpu).await.expect("the device still works");
        assert_eq!(result(&plan, y).await.expect("it runs"), [1.5, 0.0, 4.0]);
    });
}

#[test]
fn warm_compiles_kernels_before_the_plan() {
    on_each_gpu(async |gpu| {
        let (graph, _) = sum_graph();
        gpu.warm(&graph).await.expect("the kernels compile");
        assert_eq!(gpu.pipeline_labels(), ["add/forward rrw"]);
        gpu.warm(&graph).await.expect("nothing is left to do");
        let (plan, y) = sum(&gpu).await.expect("the plan finds them");
        assert_eq!(result(&plan, y).await.expect("it runs"), [1.5, 0.0, 4.0]);
        assert_eq!(gpu.pipeline_labels(), ["add/forward rrw"]);
    });
    // The future need not be awaited.
    on_each_gpu(async |gpu| {
        drop(gpu.warm(&sum_graph().0));
        let (plan, y) = sum(&gpu).await.expect("the plan finds them");
        assert_eq!(result(&plan, y).await.expect("it runs"), [1.5, 0.0, 4.0]);
    });
}

/// Kernels are compiled before weights are loaded, so a format that no kernel reads must be refused before kernel selection.
#[test]
fn formats_without_a_kernel_are_refused_by_name() {
    on_each_gpu(async |gpu| {
        for dtype in DType::ALL {
            let mut graph = Graph::new();
            let x = graph.input("x", Type::f32([1, 256]));
            let weight = graph.weight("blk.0.ffn_up.weight", Type::weight(dtype, [32, 256]));
            let y = graph.linear(x, weight);
            graph.keep(y);
            let reads = rullama_engine::gpu::reads(dtype);
            let plan = GpuPlan::new(graph, &Weights::new(&gpu), &mut HashMap::new()).await;
            match plan.map(|_| ()) {
                Err(EngineError::MissingWeight { .. }) => assert!(reads, "{}", dtype.name()),
                Err(EngineError::UnsupportedFormat { name, format }) => {
                    assert!(!reads, "{}", dtype.name());
                    assert_eq!((name.as_str(), format), ("blk.0.ffn_up.weight", dtype.name()));
                }
                other => panic!("{}: {other:?}", dtype.name()),
            }
        }
        let mut graph = Graph::new();
        let ids = graph.input("ids", Type::u32([1]));
        let table = graph.weight("token_embd.weight", Type::weight(DType::Q8_1, [8, 256]));
        graph.embed(ids, table, 1.0);
        let refused = gpu.warm(&graph).await;
        assert!(matches!(refused, Err(EngineError::UnsupportedFormat { .. })), "{refused:?}");
    });
}

/// An operation whose kernel is not valid WGSL.
#[derive(Debug)]
struct Broken;

static BROKEN: Kernel = Kernel { name: "test/broken", source: "fn main( {" };

impl Op for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        vec![inputs[0].clone()]
    }

    fn cpu(&self, _: &CpuCall<'_>) {}

    fn gpu(&self, _: &GpuCall<'_>) -> Vec<Dispatch> {
        vec![Dispatch::new(&BROKEN)]
    }
}

#[test]
fn a_rejected_kernel_is_named_and_breaks_nothing_else() {
    on_each_gpu(async |gpu| {
        let (mut graph, y) = sum_graph();
        graph.apply(Broken, &[y]);
        match gpu.warm(&graph).await {
            Err(EngineError::Kernel { kernel, .. }) => assert_eq!(kernel.trim(), "test/broken"),
            other => panic!("{other:?}"),
        }
        let (plan, y) = sum(&gpu).await.expect("the device still works");
        assert_eq!(result(&plan, y).await.expect("it runs"), [1.5, 0.0, 4.0]);
    });
}

#[test]
fn a_cache_beyond_the_binding_limit_reports_what_fits() {
    on_each_gpu(async |gpu| {
        let row = 512 * 1024;
        let slots = gpu.facts().binding_bytes / (row * 2) + 1;
        let sizes = [slots, row].map(|n| usize::try_from(n).expect("64 bits here"));
        let mut graph = Graph::new();
        graph.state("k", Type::cache(Element::F16, sizes));
        match GpuPlan::new(graph, &Weights::new(&gpu), &mut HashMap::new()).await {
            Err(EngineError::CacheTooLarge { name, bytes, limit, fits }) => {
                assert_eq!((name.as_str(), limit), ("k", gpu.facts().binding_bytes));
                assert_eq!((bytes, fits), (slots * row * 2, slots - 1));
            }
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn profiles_name_every_dispatch() {
    on_each_gpu(async |gpu| {
        let (plan, y) = sum(&gpu).await.expect("the device works");
        let timings = plan.profile(&STEP).await.expect("it runs");
        assert_eq!(plan.read_any(y).await.expect("the device responds"), [1.5, 0.0, 4.0]);
        if gpu.facts().timestamps {
            let labels: Vec<&str> = timings.iter().map(|timing| timing.label.as_str()).collect();
            assert_eq!(labels, ["add/forward rrw"]);
            assert!(timings[0].nanoseconds >= 0.0);
            let table = plan.profile_table(&[timings], &STEP, None);
            assert_eq!((table.rows[0].dispatches, table.rows[0].bytes), (1, 36.0));
        } else {
            assert!(timings.is_empty());
        }
    });
}

#[test]
fn a_rejected_command_fails_later_calls() {
    on_each_gpu(async |gpu| {
        let (plan, y) = sum(&gpu).await.expect("the device works");
        plan.write("a", &[0; 4096]);
        assert!(matches!(plan.run(&STEP), Err(EngineError::Refused { .. })));
        assert!(matches!(plan.read(y).await, Err(EngineError::Refused { .. })));
    });
}

/// An external compiler is called once for each kernel, before wgpu, with everything WebGPU needs.
#[test]
fn an_external_compiler_gets_each_kernel_once() {
    on_each_gpu(async |gpu| {
        let sources = Rc::new(RefCell::new(Vec::new()));
        let seen = Rc::clone(&sources);
        gpu.set_compiler(PipelineCompiler::new(move |source| {
            seen.borrow_mut().push(source);
            Box::pin(std::future::ready(Box::new(()) as Box<dyn Any>))
        }));
        for _ in 0..2 {
            let (plan, y) = sum(&gpu).await.expect("the device works");
            assert_eq!(result(&plan, y).await.expect("it does"), [1.5, 0.0, 4.0]);
        }
        let sources = sources.borrow();
        let [kernel] = sources.as_slice() else { panic!("{} kernels", sources.len()) };
        assert!(kernel.text.contains("fn main("), "{}", kernel.text);
        assert_eq!(gpu.pipeline_labels(), [kernel.label.as_str()]);
        let (uniforms, storage) = kernel.bindings.split_at(2);
        assert_eq!(uniforms, ["uniform"; 2]);
        assert!(storage.contains(&"storage"), "{storage:?}");
    });
}
