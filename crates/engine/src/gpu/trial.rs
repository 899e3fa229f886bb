//! What only a trial tells of a device: which form of a kernel is faster on it.

use std::{collections::HashMap, time::Duration};

use rullama_gguf::DType;

use super::{DeviceFacts, Fence, Gpu, GpuPlan, Weights};
use crate::{
    error::EngineError,
    graph::{Graph, Step, Type},
    suite::Clock,
};

/// A product as prompts have them: tokens, rows and width. Zeros will do.
const PRODUCT: [usize; 3] = [512, 3072, 1024];
/// A form is watched about this long at a time, but not for more runs than that.
const WATCHED: Duration = Duration::from_millis(8);
const MOST_RUNS: u32 = 64;
/// How often each is watched, by turns: other programs and a device that just woke up disturb one of them, not all.
const TURNS: usize = 3;
/// The share of the time that larger blocks may take at most to be chosen: they need more of a device.
const WORTH: f64 = 0.95;

impl Gpu {
    /// The same device with the blocks of plain tiles that it is faster with. Both make the same bits, so nothing but time depends on
    /// the outcome. Devices with matrix units have no plain tiles, and programs on the CPU are good for tests alone: there
    /// nothing is tried.
    ///
    /// # Errors
    /// If the device is gone or has no memory.
    pub async fn tried(&self, clock: &Clock<'_>) -> Result<Self, EngineError> {
        if self.is_software() || !self.facts().offers_large_blocks() {
            return Ok(self.clone());
        }
        match self.faster_in_large_blocks(PRODUCT, clock).await {
            Ok(large_blocks) => Ok(self.in_blocks(large_blocks)),
            // Its compiler may have less room than it said.
            Err(EngineError::Kernel { .. }) => Ok(self.clone()),
            Err(error) => Err(error),
        }
    }

    fn in_blocks(&self, large_blocks: bool) -> Self {
        self.playing(DeviceFacts { large_blocks, ..self.facts().clone() })
    }

    async fn faster_in_large_blocks(
        &self,
        product: [usize; 3],
        clock: &Clock<'_>,
    ) -> Result<bool, EngineError> {
        let small = Trial::new(self.in_blocks(false), product).await?;
        let large = Trial::new(self.in_blocks(true), product).await?;
        // The first runs are no measure.
        small.watch(1, clock).await?;
        large.watch(1, clock).await?;
        let once = small.watch(1, clock).await?.max(Duration::from_nanos(1));
        let runs = (WATCHED.as_nanos() / once.as_nanos()).clamp(1, MOST_RUNS.into()) as u32;
        let mut best = [Duration::MAX; 2];
        for _ in 0..TURNS {
            for (best, trial) in best.iter_mut().zip([&small, &large]) {
                *best = trial.watch(runs, clock).await?.min(*best);
            }
        }
        Ok(best[1].as_secs_f64() < best[0].as_secs_f64() * WORTH)
    }
}

/// A product made ready.
struct Trial {
    /// They are given back when nobody has them.
    weights: Weights,
    plan: GpuPlan,
    step: Step,
}

impl Trial {
    async fn new(gpu: Gpu, [tokens, rows, width]: [usize; 3]) -> Result<Self, EngineError> {
        let mut graph = Graph::new();
        let x = graph.input("x", Type::f32([tokens, width]));
        let ty = Type::weight(DType::Q4_K, [rows, width]);
        let w = graph.weight("w", ty.clone());
        let y = graph.linear(x, w);
        graph.keep(y);
        let mut weights = Weights::new(&gpu);
        weights.reserve("w", DType::Q4_K, &ty.shape).await?;
        let plan = GpuPlan::new(graph, &weights, &mut HashMap::new()).await?;
        Ok(Self { weights, plan, step: Step { count: tokens as u32, ..Step::default() } })
    }

    /// What a run takes, by so many of them.
    async fn watch(&self, runs: u32, clock: &Clock<'_>) -> Result<Duration, EngineError> {
        let start = clock();
        for _ in 0..runs {
            self.plan.run(&self.step)?;
        }
        Fence::new(self.weights.gpu())?.wait().await?;
        Ok((clock() - start) / runs)
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, collections::HashMap, time::Duration};

    use rullama_gguf::DType;

    use super::{DeviceFacts, Gpu, GpuPlan, Graph, Step, Type, Weights};
    use crate::cpu::Data;

    /// One that could have larger blocks.
    fn gpu() -> Gpu {
        let gpus = pollster::block_on(Gpu::all()).expect("adapters give devices");
        let gpu = gpus.iter().map(Gpu::exact).find(|gpu| gpu.facts().offers_large_blocks());
        gpu.expect("a device with the memory for large blocks")
    }

    /// The product of made-up numbers, and the kernels that made it. So few lanes are busy that it is made in large blocks.
    async fn product(gpu: Gpu) -> (Vec<f32>, String) {
        let gpu = gpu.playing(DeviceFacts { busy_lanes: 64, ..gpu.facts().clone() });
        let [tokens, rows, width] = [70, 150, 96];
        let numbers = |count: usize| (0..count).map(|i| (i as f32 * 0.7).sin()).collect::<Vec<_>>();
        let mut graph = Graph::new();
        let x = graph.input("x", Type::f32([tokens, width]));
        let ty = Type::weight(DType::F32, [rows, width]);
        let w = graph.weight("w", ty.clone());
        let y = graph.linear(x, w);
        graph.keep(y);
        let mut weights = Weights::new(&gpu);
        weights.reserve("w", DType::F32, &ty.shape).await.expect("room");
        let bytes: Vec<u8> = numbers(rows * width).iter().flat_map(|x| x.to_le_bytes()).collect();
        weights.write("w", 0, &bytes).expect("it fits");
        let plan = GpuPlan::new(graph, &weights, &mut HashMap::new()).await.expect("a plan");
        plan.write_data("x", &Type::f32([tokens, width]), &Data::F32(numbers(tokens * width)));
        plan.run(&Step { count: tokens as u32, ..Step::default() }).expect("a run");
        (plan.read_any(y).await.expect("a result"), plan.kernels().concat())
    }

    #[test]
    fn both_forms_make_the_same_bits() {
        let [small, large] =
            [false, true].map(|large| pollster::block_on(product(gpu().in_blocks(large))));
        assert!(small.1.contains("4x4") && large.1.contains("8x8"), "{} {}", small.1, large.1);
        assert!(small.0 == large.0);
    }

    /// A clock that says what each measurement took: two calls each.
    fn told(milliseconds: &[u64]) -> impl Fn() -> Duration {
        let mut at = Duration::ZERO;
        let mut says = Vec::new();
        for took in milliseconds {
            says.push(at);
            at += Duration::from_millis(*took);
            says.push(at);
        }
        let says = RefCell::new(says.into_iter());
        move || says.borrow_mut().next().expect("no more calls than told")
    }

    #[test]
    fn the_faster_form_is_chosen_by_its_best_turn() {
        let gpu = gpu();
        // Twice the first runs, one to know how many fit, then three turns.
        for (turns, large) in [
            ([9, 9, 8, 20, 10, 30, 12, 9, 6], true),
            ([9, 9, 8, 10, 10, 10, 10, 10, 10], false),
            ([9, 9, 8, 10, 20, 10, 20, 10, 20], false),
        ] {
            let clock = told(&turns);
            let found = gpu.faster_in_large_blocks([64, 128, 256], &clock);
            assert_eq!(pollster::block_on(found).expect("both run"), large, "{turns:?}");
        }
    }

    #[test]
    fn programs_on_the_cpu_try_nothing() {
        for gpu in pollster::block_on(Gpu::all()).expect("adapters give devices") {
            if gpu.is_software() {
                let tried = pollster::block_on(gpu.tried(&|| panic!("nothing is timed")));
                assert_eq!(tried.expect("nothing can fail").facts(), gpu.facts());
            }
        }
    }
}
