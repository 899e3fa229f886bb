//! Experts that stay on the host: their weights are read where the file lies, and the CPU computes them.

use rullama_engine::{
    cpu::Data,
    executor::{Device, Memory, Plan},
    graph::Step,
};
use rullama_models::gemma4::{Inputs, expert_graph};

use super::Inner;
use crate::{adapters::Adapters, error::RuntimeError};

/// What the device made for the experts of a layer.
#[derive(Debug)]
pub(crate) struct Routed {
    /// What enters them `[t, d]`.
    pub(crate) x: Vec<f32>,
    /// Which ones each token goes to `[t, k]`.
    pub(crate) ids: Vec<u32>,
    /// How much each of them counts `[t, k]`.
    pub(crate) weights: Vec<f32>,
}

impl Inner {
    /// The weighted sum of the experts of each token `[t, d]`, with what adapters change in them.
    ///
    /// The graph is made for each pass: that is little beside the products, and memory is needed for one layer at a time.
    pub(crate) async fn host_experts(
        &self,
        layer: usize,
        routed: Routed,
        step: &Step,
        adapters: Option<&Adapters>,
    ) -> Result<Vec<f32>, RuntimeError> {
        let Routed { x, mut ids, weights } = routed;
        let tokens = x.len() / self.config.width;
        let adapted = adapters.map(Adapters::adapted);
        let experts = expert_graph(&self.config, &self.catalog, layer, tokens, adapted)
            .expect("only graphs with experts are cut");
        let host = adapters.map_or(&self.host, Adapters::host_weights);
        // Numbers that a broken model makes may choose experts that do not exist.
        let last = self.config.experts.map_or(0, |experts| experts.count - 1);
        ids.iter_mut().for_each(|id| *id = (*id).min(u32::try_from(last).unwrap_or(u32::MAX)));
        let plan = Plan::new(experts.graph, host, &mut Memory::new(&Device::Cpu)).await?;
        plan.write_numbers(Inputs::X, x);
        plan.write_ids(Inputs::EXPERT_IDS, ids);
        plan.write_numbers(Inputs::EXPERT_WEIGHTS, weights);
        match plan.run_reading(step, &[experts.result]).await?.wait().await?.pop() {
            Some(Data::F32(y)) => Ok(y),
            other => panic!("experts make numbers, not {other:?}"),
        }
    }
}
