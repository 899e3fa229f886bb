//! Experts on the host: the CPU computes them from the mapped file.

use rullama_engine::{
    cpu::Data,
    executor::{Device, Memory, Plan},
    graph::Step,
};
use rullama_models::decoder::{Inputs, expert_graph};

use super::Inner;
use crate::{adapters::Adapters, error::RuntimeError};

/// Inputs of a layer's experts, computed by the device.
#[derive(Debug)]
pub(crate) struct Routed {
    /// Input rows `[t, d]`.
    pub(crate) x: Vec<f32>,
    /// Expert ids of each token `[t, k]`.
    pub(crate) ids: Vec<u32>,
    /// Expert weights of each token `[t, k]`.
    pub(crate) weights: Vec<f32>,
}

impl Inner {
    /// The weighted sum of each token's experts `[t, d]`, including adapters.
    /// The graph is built for each pass: that is cheap compared with the matmuls, and needs memory for one layer at a time.
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
            .expect("only graphs with experts are split");
        let host = adapters.map_or(&self.host, Adapters::host_weights);
        // A broken model (NaN logits) may select experts that do not exist.
        let last = self.config.experts.map_or(0, |experts| experts.count - 1);
        ids.iter_mut().for_each(|id| *id = (*id).min(u32::try_from(last).unwrap_or(u32::MAX)));
        let plan = Plan::new(experts.graph, host, &mut Memory::new(&Device::Cpu)).await?;
        plan.write_f32(Inputs::X, x);
        plan.write_ids(Inputs::EXPERT_IDS, ids);
        plan.write_f32(Inputs::EXPERT_WEIGHTS, weights);
        match plan.run_reading(step, &[experts.result]).await?.wait().await?.pop() {
            Some(Data::F32(y)) => Ok(y),
            other => panic!("experts return f32, not {other:?}"),
        }
    }
}
