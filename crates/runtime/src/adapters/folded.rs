//! Folded LoRA down-projections: computed once, on the device, from the model's weights.

use std::collections::BTreeMap;

use rullama_adapter::Pair;
use rullama_engine::{
    cpu::Data,
    executor::{Device, Memory, Plan, Weights},
    graph::Step,
};
use rullama_gguf::DType;
use rullama_models::{decoder::Decoder, folded_lora_graph};

use super::{factors, write_one};
use crate::{error::RuntimeError, model::Model};

/// Storage buffers of a dispatch that uses folded factors.
const BUFFERS: u32 = 10;

/// Whether the device supports kernels with folded factors.
pub(super) fn supported(device: &Device) -> bool {
    matches!(device, Device::Gpu(gpu) if gpu.facts().storage_buffers >= BUFFERS)
}

impl Model {
    /// Writes the folded factors of a graph; all other factors are written already.
    pub(super) async fn write_folded(
        &self,
        own: &mut Weights,
        decoder: &Decoder,
        (dtype, pairs): (DType, &[Pair]),
    ) -> Result<(), RuntimeError> {
        if decoder.folded.is_empty() {
            return Ok(());
        }
        let pairs: BTreeMap<&str, _> = pairs.iter().map(|p| (p.tensor.as_str(), p)).collect();
        let down = |name: &str| {
            let group = decoder.factors.iter().find(|group| group.a == name);
            factors::of_group(group.expect("a group of the graph"), &pairs).a
        };
        own.flush().await?;
        let fold = folded_lora_graph(&self.0.catalog, (&decoder.folded, &decoder.factors), dtype);
        let plan =
            Plan::new(fold.graph, &self.0.weights.with(own), &mut Memory::new(self.device()))
                .await?;
        for a in decoder.folded.iter().flat_map(|group| &group.a) {
            plan.write_f32(a, down(a));
        }
        let values: Vec<_> = fold.outputs.concat();
        let folded = plan.run_reading(&Step::default(), &values).await?.wait().await?;
        let mut folded = folded.chunks_exact(2);
        for group in &decoder.folded {
            let (mut p, mut q) = (Vec::new(), group.own.as_deref().map(down).unwrap_or_default());
            for more in folded.by_ref().take(group.a.len()) {
                let [Data::F32(p_more), Data::F32(q_more)] = more else {
                    unreachable!("folded weights are f32")
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
