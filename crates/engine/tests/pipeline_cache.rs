//! Compiled pipelines that are kept between runs.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
};

use pollster::block_on;
use rullama_engine::{
    cpu::Data,
    gpu::{Gpu, GpuPlan, OpenOptions, PipelineKey, PipelineStore, Weights},
    graph::{Graph, Step, Type},
};

/// A store in memory.
#[derive(Debug, Default)]
struct Memory {
    kept: RefCell<HashMap<String, Vec<u8>>>,
    saves: Cell<usize>,
}

impl PipelineStore for Memory {
    fn load(&self, key: &PipelineKey) -> Option<Vec<u8>> {
        self.kept.borrow().get(&key.name()).cloned()
    }

    fn save(&self, key: &PipelineKey, data: &[u8]) {
        self.saves.set(self.saves.get() + 1);
        self.kept.borrow_mut().insert(key.name(), data.to_vec());
    }
}

impl Memory {
    /// The one thing kept.
    fn data(&self) -> Vec<u8> {
        let kept = self.kept.borrow();
        assert_eq!(kept.len(), 1);
        kept.values().next().expect("one").clone()
    }

    fn replace(&self, data: &[u8]) {
        self.kept.borrow_mut().values_mut().for_each(|kept| *kept = data.to_vec());
    }
}

fn open(store: &Rc<Memory>) -> Gpu {
    let pipelines = Some(Rc::clone(store) as Rc<dyn PipelineStore>);
    let opened = block_on(Gpu::open_with(OpenOptions { pipelines, ..OpenOptions::default() }));
    opened.expect("no WebGPU adapter: `cargo xtask setup` installs a software one")
}

/// Runs kernels on the device.
fn results(gpu: &Gpu) -> Vec<f32> {
    let mut graph = Graph::new();
    let (a, b) = (graph.input("a", Type::f32([1, 3])), graph.input("b", Type::f32([1, 3])));
    let sum = graph.add(a, b);
    let product = graph.mul(sum, b);
    graph.keep(product);
    let step = Step { position: 0, count: 1, seed: 0, reserved: 0 };
    block_on(async {
        let plan = GpuPlan::new(graph, &Weights::new(gpu), &mut HashMap::new()).await?;
        plan.write_data("a", &Type::f32([1, 3]), &Data::F32(vec![1.0, 2.0, 3.0]));
        plan.write_data("b", &Type::f32([1, 3]), &Data::F32(vec![0.5, -2.0, 1.0]));
        plan.run(&step)?;
        plan.read_any(product).await
    })
    .expect("the kernels run")
}

/// A run of a program; the device closes at its end.
fn run(store: &Rc<Memory>) {
    assert_eq!(results(&open(store)), [0.75, 0.0, 4.0]);
}

#[test]
fn a_later_run_loads_what_an_earlier_one_saved() {
    let store = Rc::new(Memory::default());
    let gpu = open(&store);
    let Some(empty) = gpu.pipeline_cache() else {
        assert_ne!(std::env::consts::OS, "linux", "Vulkan has pipeline caches");
        return;
    };
    assert_eq!(results(&gpu), [0.75, 0.0, 4.0]);
    let data = gpu.pipeline_cache().expect("it still has one");
    // Software GPUs keep nothing in their caches.
    assert!(data.len() > empty.len() || gpu.is_software());
    let is_software = gpu.is_software();
    // The device at another feature level keeps it open.
    let other = gpu.exact();
    drop(gpu);
    assert_eq!(store.saves.get(), 0);
    drop(other);
    assert_eq!((store.saves.get(), store.data()), (1, data));
    // The driver has the pipelines before anything is compiled.
    let next = open(&store);
    assert!(next.pipeline_cache().expect("it has one").len() > empty.len() || is_software);
    drop(next);
    // Nothing new is compiled, so nothing is saved. Other drivers may order the same pipelines in another way.
    run(&store);
    assert!(store.saves.get() == 1 || !is_software);
}

#[test]
fn damaged_data_is_ignored_and_replaced() {
    let store = Rc::new(Memory::default());
    run(&store);
    if store.saves.get() == 0 {
        assert_ne!(std::env::consts::OS, "linux", "Vulkan has pipeline caches");
        return;
    }
    let whole = store.data();
    let (mut first, mut last) = (whole.clone(), whole.clone());
    first[0] ^= 1;
    *last.last_mut().expect("a byte") ^= 0x80;
    let cut = &whole[..whole.len() - 1];
    for (saves, damaged) in [&first, &last, cut, b"", b"WGPUPLCH"].into_iter().enumerate() {
        store.replace(damaged);
        run(&store);
        assert_eq!(store.saves.get(), saves + 2);
        assert_ne!(store.data(), damaged);
    }
}

#[test]
fn idle_and_lost_devices_save_nothing() {
    let store = Rc::new(Memory::default());
    drop(open(&store));
    assert_eq!(store.saves.get(), 0);
    let gpu = open(&store);
    assert_eq!(results(&gpu), [0.75, 0.0, 4.0]);
    gpu.destroy();
    assert_eq!(gpu.pipeline_cache(), None);
    drop(gpu);
    assert_eq!(store.saves.get(), 0);
}

#[test]
fn without_a_store_there_is_no_cache() {
    let gpu = block_on(Gpu::open()).expect("a GPU");
    assert_eq!(results(&gpu), [0.75, 0.0, 4.0]);
    assert_eq!(gpu.pipeline_cache(), None);
}
