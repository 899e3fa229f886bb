//! How much memory a model will take, before it takes it.

use std::collections::BTreeMap;

use rullama_engine::{
    executor::{Device, state_bytes},
    gpu::work_bytes,
    graph::{Origin, Type},
};
use rullama_models::{
    Catalog,
    gemma4::{Config, Segment, crosses_cut},
};

use super::{
    load::{LoadOptions, TABLE, TablePlace, expert_tensors},
    passes::{Placement, UsualPasses},
    search,
};
use crate::error::RuntimeError;

/// Bytes a model and one session take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Weights on the GPU, without the table of per-layer inputs.
    pub weights: u64,
    /// Experts among these weights.
    pub gpu_expert_bytes: u64,
    /// Experts that stay on the host.
    pub host_expert_bytes: u64,
    /// How many of the last layers have their experts there.
    pub host_experts: usize,
    /// The table of per-layer inputs, which may stay on the host.
    pub table: u64,
    /// Caches of one session.
    pub caches: u64,
    /// Activations.
    pub work: u64,
    /// Activations of the first segments alone: all of them, where no experts are on the host.
    pub(super) first_work: u64,
    /// The context the caches are for.
    pub context: usize,
}

impl MemoryUse {
    /// What a model will take on a GPU with these options. Where they do not say how many experts stay on the host, there are
    /// as few as fit the budget; if none of that fits, those that need least.
    pub fn estimate(config: &Config, catalog: &Catalog, options: &LoadOptions) -> Self {
        let most = config.experts.map_or(0, |_| config.layers.len());
        let with = |layers| Self::with_host_experts(config, catalog, options, layers);
        match (options.host_experts, options.gpu_budget) {
            (Some(layers), _) => with(layers.min(most)),
            (None, None) => with(0),
            (None, Some(budget)) => {
                let table = options.table == TablePlace::Gpu;
                search::fewest(most, &with, &|found| found.gpu(table), budget)
            }
        }
    }

    fn with_host_experts(
        config: &Config,
        catalog: &Catalog,
        options: &LoadOptions,
        host_experts: usize,
    ) -> Self {
        let placement = Placement { table: false, host_experts };
        let passes = UsualPasses::new(config, catalog, options, placement);
        let fill = passes.segments(&passes.longest_prefill());
        let (step, short) = passes.sampled_decode();
        let step = passes.segments(&step);
        let short = short.map(|pass| passes.segments(&pass));
        let all_segments = || fill.iter().chain(&step).chain(short.iter().flatten());
        // By name: segments and graphs share them.
        let mut states = BTreeMap::new();
        for (_, info) in all_segments().flat_map(|segment| segment.graph.values()) {
            if let Origin::State(name) = &info.origin {
                states.insert(name, state_bytes(&info.ty) as u64);
            }
        }
        let (cut, caches): (Vec<_>, Vec<_>) =
            states.into_iter().partition(|(name, _)| crosses_cut(name));
        let sum = |states: Vec<(_, u64)>| states.into_iter().map(|(_, bytes)| bytes).sum::<u64>();
        // What layers on the device share is in the first segment of a graph.
        let graphs = [Some(&fill), Some(&step), short.as_ref()];
        let work_of = |segment: &Segment| work_bytes(&segment.graph);
        let first =
            graphs.into_iter().flatten().filter_map(|segments| segments.first().map(work_of)).sum();
        let later =
            graphs.into_iter().flatten().flat_map(|segments| segments.iter().skip(1).map(work_of));
        let work: u64 = first + later.sum::<u64>();

        let bytes = |name: &str| catalog.get(name).map_or(0, Type::bytes);
        let experts = |layer: usize| -> u64 {
            expert_tensors(config, catalog, layer).iter().map(|name| bytes(name)).sum()
        };
        let first_on_host = config.layers.len().saturating_sub(host_experts);
        let host_expert_bytes = (first_on_host..config.layers.len()).map(experts).sum();
        let all: u64 = catalog.iter().map(|(_, ty)| ty.bytes()).sum();
        Self {
            weights: all - bytes(TABLE) - host_expert_bytes,
            gpu_expert_bytes: (0..first_on_host).map(experts).sum(),
            host_expert_bytes,
            host_experts,
            table: bytes(TABLE),
            caches: sum(caches),
            work: work + sum(cut),
            first_work: first,
            context: passes.context,
        }
    }

    /// Bytes on the GPU.
    pub fn gpu(&self, with_table: bool) -> u64 {
        self.weights + self.caches + self.work + if with_table { self.table } else { 0 }
    }

    /// Bytes the host keeps: experts, and the table where it is not on the GPU. They are pages of the file where that is mapped.
    pub fn host(&self, with_table: bool) -> u64 {
        self.host_expert_bytes + if with_table { self.table } else { 0 }
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
        if fits(wanted) { Ok(wanted) } else { Err(self.too_much(wanted, options)) }
    }

    /// Refuses a model without a table of per-layer inputs that needs more than it may use.
    ///
    /// # Errors
    /// If it does not fit.
    pub fn check_budget(&self, options: &LoadOptions) -> Result<(), RuntimeError> {
        match options.gpu_budget {
            Some(budget) if self.gpu(false) > budget => Err(self.too_much(false, options)),
            _ => Ok(()),
        }
    }

    fn too_much(&self, with_table: bool, options: &LoadOptions) -> RuntimeError {
        RuntimeError::DoesNotFit {
            need: self.gpu(with_table),
            weights: self.weights + if with_table { self.table } else { 0 },
            caches: self.caches,
            work: self.work,
            context: self.context,
            budget: options.gpu_budget.unwrap_or(u64::MAX),
        }
    }
}
