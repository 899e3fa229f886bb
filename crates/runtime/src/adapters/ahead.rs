//! First factors that are met ahead of their products, as weights of their own: made once, on the device, of the model's weights.

use std::collections::BTreeMap;

use rullama_adapter::Pair;
use rullama_engine::{
    cpu::Data,
    executor::{Device, Memory, Plan, Weights},
    graph::Step,
};
use rullama_gguf::DType;
use rullama_models::{ahead_graph, gemma4::Decoder};

use super::{factors, write_one};
use crate::{error::RuntimeError, model::Model};

/// Buffers of a dispatch that takes such factors.
const BUFFERS: u32 = 10;

/// Whether kernels of this device take them.
pub(super) fn pays(device: &Device) -> bool {
    matches!(device, Device::Gpu(gpu) if gpu.facts().storage_buffers >= BUFFERS)
}

impl Model {
    /// Writes what a graph wants of first factors; all other factors are written already.
    pub(super) async fn write_ahead(
        &self,
        own: &mut Weights,
        decoder: &Decoder,
        (dtype, pairs): (DType, &[Pair]),
    ) -> Result<(), RuntimeError> {
        if decoder.ahead.is_empty() {
            return Ok(());
        }
        let pairs: BTreeMap<&str, _> = pairs.iter().map(|p| (p.tensor.as_str(), p)).collect();
        let first = |name: &str| {
            let group = decoder.factors.iter().find(|group| group.a == name);
            factors::of_group(group.expect("a group of the graph"), &pairs).a
        };
        own.settle().await?;
        let apart = ahead_graph(&self.0.catalog, (&decoder.ahead, &decoder.factors), dtype);
        let plan =
            Plan::new(apart.graph, &self.0.weights.with(own), &mut Memory::new(self.device()))
                .await?;
        for a in decoder.ahead.iter().flat_map(|group| &group.a) {
            plan.write_numbers(a, first(a));
        }
        let values: Vec<_> = apart.made.concat();
        let made = plan.run_reading(&Step::default(), &values).await?.wait().await?;
        let mut made = made.chunks_exact(2);
        for group in &decoder.ahead {
            let (mut p, mut q) = (Vec::new(), group.own.as_deref().map(first).unwrap_or_default());
            for more in made.by_ref().take(group.a.len()) {
                let [Data::F32(p_more), Data::F32(q_more)] = more else {
                    unreachable!("sums are floats")
                };
                p.extend(p_more);
                q.extend(q_more);
            }
            let graphs = || decoder.segments.iter().map(|segment| &segment.graph);
            write_one(own, graphs(), &group.p, &p).await?;
            write_one(own, graphs(), &group.q, &q).await?;
        }
        Ok(())
    }
}
