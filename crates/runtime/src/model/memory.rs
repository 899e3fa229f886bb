//! How much memory a model will take, before it takes it.

use rullama_engine::{
    executor::{Device, state_bytes},
    gpu::work_bytes,
    graph::{Element, Origin},
};
use rullama_models::{
    Catalog,
    gemma4::{Config, Feed, Pass, Want, decoder},
};

use super::load::{LoadOptions, TABLE, TablePlace};
use crate::{
    error::RuntimeError,
    session::{DEFAULT_CONTEXT, MOST_TOKENS, ring_slots},
};

/// Bytes a model and one session take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryUse {
    /// Weights, without the table of per-layer inputs.
    pub weights: u64,
    /// The table of per-layer inputs, which may stay on the host.
    pub table: u64,
    /// Caches of one session.
    pub caches: u64,
    /// Activations.
    pub work: u64,
    /// The context the caches are for.
    pub context: usize,
}

impl MemoryUse {
    /// What a model will take with these options.
    pub fn estimate(config: &Config, catalog: &Catalog, options: &LoadOptions) -> Self {
        let context = options.context.unwrap_or(DEFAULT_CONTEXT).min(config.context);
        let chunk = MOST_TOKENS.min(context);
        let pass = |tokens, feed, want| Pass {
            tokens,
            feed,
            table: false,
            want,
            context,
            ring: ring_slots(config, context, chunk),
            cache: options.cache.into(),
            suppressed: 0,
            traced: false,
        };
        let fill = decoder(config, catalog, &pass(chunk, Feed::Ids, Want::Caches)).graph;
        let step = decoder(config, catalog, &pass(1, Feed::Token, Want::Drawn)).graph;
        let states = step.values().filter(|(_, info)| matches!(info.origin, Origin::State(_)));
        let bytes = |name: &str| catalog.get(name).map_or(0, weight_bytes);
        Self {
            weights: catalog
                .iter()
                .filter(|(name, _)| *name != TABLE)
                .map(|(_, ty)| weight_bytes(ty))
                .sum(),
            table: bytes(TABLE),
            caches: states.map(|(_, info)| state_bytes(&info.ty) as u64).sum(),
            work: work_bytes(&fill) + work_bytes(&step),
            context,
        }
    }

    /// Bytes on the GPU.
    pub fn gpu(&self, with_table: bool) -> u64 {
        self.weights + self.caches + self.work + if with_table { self.table } else { 0 }
    }

    /// Whether the table shall go onto the GPU.
    pub(super) fn table_wanted(
        &self,
        device: &Device,
        options: &LoadOptions,
    ) -> Result<bool, RuntimeError> {
        let Device::Gpu(gpu) = device else { return Ok(true) };
        let fits =
            |with_table| options.gpu_budget.is_none_or(|budget| self.gpu(with_table) <= budget);
        let wanted = match options.table {
            TablePlace::Gpu => true,
            TablePlace::Host => false,
            TablePlace::Auto => fits(true) && (gpu.is_discrete() || options.gpu_budget.is_some()),
        };
        if fits(wanted) {
            return Ok(wanted);
        }
        Err(RuntimeError::DoesNotFit {
            need: self.gpu(wanted),
            weights: self.weights + if wanted { self.table } else { 0 },
            caches: self.caches,
            work: self.work,
            context: self.context,
            budget: options.gpu_budget.unwrap_or(u64::MAX),
        })
    }
}

fn weight_bytes(ty: &rullama_engine::graph::Type) -> u64 {
    let Element::Weight(dtype) = ty.element else { return 0 };
    (ty.shape.len() / dtype.block_elements()) as u64 * dtype.block_bytes() as u64
}
