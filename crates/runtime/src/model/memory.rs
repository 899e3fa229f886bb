//! Memory estimates of a model, before it is loaded.

use std::collections::BTreeMap;

use rullama_engine::{
    cpu,
    executor::{Device, state_bytes},
    gpu,
    graph::{Graph, Origin, Type},
};
use rullama_models::{
    Catalog,
    decoder::{Config, Segment, crosses_cut},
};

use super::{
    load::{LoadOptions, TABLE, TablePlace, expert_tensors},
    passes::{DefaultPasses, Placement},
    search,
};
use crate::error::RuntimeError;

/// Bytes a model and one session take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Weights on the GPU, without the per-layer input table.
    pub weights: u64,
    /// Experts among these weights.
    pub gpu_expert_bytes: u64,
    /// Experts that stay on the host.
    pub host_expert_bytes: u64,
    /// Number of last layers whose experts are on the host.
    pub host_experts: usize,
    /// The per-layer input table, which may stay on the host.
    pub table: u64,
    /// KV caches of one session.
    pub caches: u64,
    /// Activations.
    pub work: u64,
    /// Activations of the first segments: all activations if no experts are on the host.
    pub(super) first_work: u64,
    /// Context that the caches are planned for.
    pub context: usize,
}

impl MemoryUse {
    /// Estimates memory with these options. If they do not set the number of layers with experts on the host, it is the smallest
    /// that fits the budget; if none fits, the one that needs the least memory.
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
        let passes = DefaultPasses::new(config, catalog, options, placement);
        let fill = passes.segments(&passes.longest_prefill());
        let (step, short) = passes.sampled_decode();
        let step = passes.segments(&step);
        let short = short.map(|pass| passes.segments(&pass));
        let all_segments = || fill.iter().chain(&step).chain(short.iter().flatten());
        // By name: segments and graphs share states.
        let mut states = BTreeMap::new();
        for (_, info) in all_segments().flat_map(|segment| segment.graph.values()) {
            if let Origin::State(name) = &info.origin {
                states.insert(name, kept_bytes(&info.ty, options));
            }
        }
        let (cut, caches): (Vec<_>, Vec<_>) =
            states.into_iter().partition(|(name, _)| crosses_cut(name));
        let sum = |states: Vec<(_, u64)>| states.into_iter().map(|(_, bytes)| bytes).sum::<u64>();
        // The first segment holds all layers before the first split.
        let graphs = [Some(&fill), Some(&step), short.as_ref()];
        let work_of = |segment: &Segment| work_bytes(&segment.graph, options);
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

    /// Bytes on the GPU, or on the host of a model on the CPU.
    pub fn gpu(&self, with_table: bool) -> u64 {
        self.weights + self.caches + self.work + if with_table { self.table } else { 0 }
    }

    /// Bytes on the host: experts, and the table if it is not on the GPU. They are pages of the file if it is mapped.
    pub fn host(&self, with_table: bool) -> u64 {
        self.host_expert_bytes + if with_table { self.table } else { 0 }
    }

    /// Whether the per-layer input table is placed on the GPU.
    pub(super) fn table_wanted(
        &self,
        device: &Device,
        options: &LoadOptions,
    ) -> Result<bool, RuntimeError> {
        let fits =
            |with_table| options.gpu_budget.is_none_or(|budget| self.gpu(with_table) <= budget);
        let wanted = match (options.table, device) {
            // Pages of the file, if memory is not planned.
            (_, Device::Cpu) if !options.on_cpu => return Ok(true),
            (TablePlace::Gpu, _) => true,
            (TablePlace::Host, _) => false,
            (_, Device::Cpu) => fits(true),
            (TablePlace::IfItFits, Device::Gpu(gpu)) => fits(true) && !gpu.is_software(),
            (TablePlace::Auto, Device::Gpu(gpu)) => {
                fits(true) && (gpu.is_discrete() || options.gpu_budget.is_some())
            }
        };
        if fits(wanted) { Ok(wanted) } else { Err(self.too_much(wanted, options)) }
    }

    /// Checks the memory of a model without a per-layer input table against the budget.
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

/// Bytes of a state: the CPU keeps floats, whatever they are rounded to.
fn kept_bytes(ty: &Type, options: &LoadOptions) -> u64 {
    match options.on_cpu {
        true => 4 * ty.shape.len() as u64,
        false => state_bytes(ty) as u64,
    }
}

/// Bytes of the activations of a pass. On the CPU, the shorter prefill passes, each half as long as the next, take as much again as the longest.
fn work_bytes(graph: &Graph, options: &LoadOptions) -> u64 {
    match options.on_cpu {
        true => 2 * cpu::work_bytes(graph),
        false => gpu::work_bytes(graph),
    }
}
