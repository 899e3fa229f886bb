//! The plans of a pass: one, or several with the host's experts in between.

use rullama_engine::{
    cpu::Data,
    executor::{Memory, Plan, Results, Weights},
    gpu::GpuPlan,
    graph::{Cost, Graph, Origin, Step, Value},
};
use rullama_models::decoder::{Decoder, HostExperts, Inputs};

use crate::{
    adapters::Adapters,
    error::RuntimeError,
    model::{Inner, Routed},
};

/// The plans of a pass and its result.
#[derive(Debug)]
pub(crate) struct PreparedPass {
    /// All segments but the last, each with the host's experts after it.
    front: Vec<(Plan, HostExperts)>,
    last: Plan,
    /// Adapters of the host's experts.
    adapters: Option<Adapters>,
    /// A value of the last segment.
    pub(crate) result: Option<Value>,
}

impl PreparedPass {
    /// Prepares the plans of a graph that was built for these adapters.
    pub(crate) async fn new(
        decoder: Decoder,
        model: &Inner,
        adapters: Option<&Adapters>,
        memory: &mut Memory,
    ) -> Result<Self, RuntimeError> {
        let weights = adapters.map_or(&model.weights, Adapters::weights);
        Self::with_weights(decoder, weights, adapters, memory).await
    }

    /// Prepares the plans of a graph over these weights, with the adapters of the host's experts.
    pub(crate) async fn with_weights(
        decoder: Decoder,
        weights: &Weights,
        adapters: Option<&Adapters>,
        memory: &mut Memory,
    ) -> Result<Self, RuntimeError> {
        let (mut front, mut last) = (Vec::new(), None);
        for segment in decoder.segments {
            let plan = Plan::new(segment.graph, weights, memory).await?;
            match segment.experts {
                Some(experts) => front.push((plan, experts)),
                None => last = Some(plan),
            }
        }
        let last = last.expect("no experts follow the last segment");
        Ok(Self { front, last, adapters: adapters.cloned(), result: decoder.result })
    }

    /// The state [`Inputs::DRAFTS`], if the last segment has it.
    pub(super) fn drafts(&self) -> Option<Value> {
        let named =
            |origin: &Origin| matches!(origin, Origin::State(name) if name == Inputs::DRAFTS);
        let mut values = self.last.graph().values();
        values.find(|(_, info)| named(&info.origin)).map(|(value, _)| value)
    }

    /// Writes ids into the input or state of this name, in segments that have it.
    pub(crate) fn write_ids(&self, name: &str, ids: &[u32]) {
        self.plans()
            .filter(|plan| plan.has(name))
            .for_each(|plan| plan.write_ids(name, ids.into()));
    }

    /// Writes f32 values into the input of this name, in segments that have it.
    pub(crate) fn write_f32(&self, name: &str, values: &[f32]) {
        let plans = self.plans().filter(|plan| plan.has(name));
        plans.for_each(|plan| plan.write_f32(name, values.into()));
    }

    /// Runs the graph without waiting for the last segment.
    pub(crate) async fn run(&self, model: &Inner, step: &Step) -> Result<(), RuntimeError> {
        self.run_front(model, step).await?;
        Ok(self.last.run(step)?)
    }

    /// Runs the graph and reads back values of its last segment.
    pub(crate) async fn run_reading(
        &self,
        model: &Inner,
        step: &Step,
        values: &[Value],
    ) -> Result<Results, RuntimeError> {
        self.run_front(model, step).await?;
        Ok(self.last.run_reading(step, values).await?)
    }

    /// Records the next pass while the device is busy.
    pub(super) fn prepare(&self) {
        self.plans().for_each(Plan::prepare);
    }

    /// Runs the graph and reads back values of every segment.
    pub(super) async fn run_reading_all(
        &self,
        model: &Inner,
        step: &Step,
        values: &[Vec<Value>],
    ) -> Result<Vec<Vec<Data>>, RuntimeError> {
        let mut all = Vec::new();
        for (index, values) in values.iter().enumerate() {
            all.push(match index < self.front.len() {
                true => self.run_segment(index, model, step, values).await?,
                false => self.last.run_reading(step, values).await?.wait().await?,
            });
        }
        Ok(all)
    }

    async fn run_front(&self, model: &Inner, step: &Step) -> Result<(), RuntimeError> {
        for index in 0..self.front.len() {
            self.run_segment(index, model, step, &[]).await?;
        }
        Ok(())
    }

    /// Runs a segment and the host's experts after it, and reads back values of the segment.
    async fn run_segment(
        &self,
        index: usize,
        model: &Inner,
        step: &Step,
        values: &[Value],
    ) -> Result<Vec<Data>, RuntimeError> {
        let (plan, HostExperts { layer, x, ids, weights }) = &self.front[index];
        let wanted = [values, &[*x, *ids, *weights]].concat();
        let mut data = plan.run_reading(step, &wanted).await?.wait().await?;
        let routed = match (data.pop(), data.pop(), data.pop()) {
            (Some(Data::F32(weights)), Some(Data::U32(ids)), Some(Data::F32(x))) => {
                Routed { x, ids, weights }
            }
            other => panic!("experts take f32 rows and ids, not {other:?}"),
        };
        let y = model.host_experts(*layer, routed, step, self.adapters.as_ref()).await?;
        self.plan(index + 1).write_f32(Inputs::EXPERTS, y);
        Ok(data)
    }

    /// The graphs of all segments.
    pub(super) fn graphs(&self) -> impl Iterator<Item = &Graph> {
        self.plans().map(Plan::graph)
    }

    /// The GPU plan, if the graph is not split.
    pub(crate) fn whole_on_gpu(&self) -> Option<&GpuPlan> {
        match &self.last {
            Plan::Gpu(plan) if self.front.is_empty() => Some(plan),
            _ => None,
        }
    }

    /// Estimated cost of a pass on the device.
    pub(super) fn cost(&self, step: &Step) -> Cost {
        let mut cost = Cost::default();
        self.plans().for_each(|plan| cost += plan.cost(step));
        cost
    }

    pub(crate) fn gpu_bytes(&self) -> u64 {
        self.plans().map(Plan::gpu_bytes).sum()
    }

    fn plan(&self, index: usize) -> &Plan {
        self.front.get(index).map_or(&self.last, |(plan, _)| plan)
    }

    fn plans(&self) -> impl Iterator<Item = &Plan> {
        self.front.iter().map(|(plan, _)| plan).chain([&self.last])
    }
}
