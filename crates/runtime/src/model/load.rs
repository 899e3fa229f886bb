//! Loading a model.

use std::{cell::OnceCell, collections::HashSet, rc::Rc};

use rullama_engine::{
    EngineError,
    executor::{Device, Weights},
    graph::{Element, Graph, Origin},
};
use rullama_gguf::{Gguf, TensorInfo};
use rullama_models::{
    Catalog, ModelError,
    decoder::{Config, Kind, Pass, PassInput, PassOutput, ROPE_FACTORS, decoder, expert_graph},
    family::GEMMA4,
};

use super::{
    CacheType, Inner,
    memory::MemoryUse,
    passes::{DefaultPasses, Placement},
};
use crate::{
    background::Background,
    error::RuntimeError,
    loader::{Loader, OnProgress, Wanted, check_formats},
    vocabulary::FileVocabulary,
};

/// Tensor name of the per-layer input table.
pub(super) const TABLE: &str = "per_layer_token_embd.weight";

/// Options of [`super::Model::load`].
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// Placement of the per-layer input table.
    pub table: TablePlace,
    /// Memory budget in bytes; without it, the device decides.
    pub gpu_budget: Option<u64>,
    /// Context that memory is planned for; sessions may use another.
    pub context: Option<usize>,
    /// KV cache format that memory is planned for.
    pub cache: CacheType,
    /// Whether the budget is one of host memory, for a model on the CPU; without it, memory is planned for a GPU.
    pub on_cpu: bool,
    /// Maximum tokens of a pass that memory is planned for; `None` = the default of sessions.
    pub chunk: Option<usize>,
    /// Number of last layers whose experts are kept and computed on the host; by default, as few as fit the budget. Ignored for models
    /// without experts and on the CPU.
    pub host_experts: Option<usize>,
}

/// Placement of the per-layer input table: the largest tensor of the small models, of which a token reads one row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TablePlace {
    /// On a discrete GPU if it fits, otherwise on the host.
    #[default]
    Auto,
    /// In the file; rows are read when needed.
    Host,
    /// On the GPU, discrete or not, if it fits; otherwise, and on software renderers, on the host. For pages: browsers do not tell the
    /// kind of a GPU, and a row that is read from their storage takes longer than a step.
    IfItFits,
    /// On the GPU.
    Gpu,
}

pub(super) async fn load(
    gguf: Gguf,
    device: Device,
    options: &LoadOptions,
    progress: OnProgress<'_>,
) -> Result<Inner, RuntimeError> {
    let config = Config::of_file(&gguf)?;
    config.check_cache(options.cache.into())?;
    let catalog = Catalog::of_file(&gguf, &config.expected())?;
    config.refuse_unknown(gguf.tensors().iter().map(TensorInfo::name))?;
    let rope_factors = rope_factors(&gguf, &config).await?;
    let need = MemoryUse::estimate(&config, &catalog, options);
    let wanted = need.table_wanted(&device, options)?;

    let host_experts = if matches!(device, Device::Gpu(_)) { need.host_experts } else { 0 };
    let on_host = host_tensors(&config, &catalog, host_experts);
    let graph = full_graph(&config, &catalog, wanted);
    let mut wants: Vec<Wanted<'_>> = graph
        .values()
        .filter(|(_, info)| info.origin.weight_name().is_some())
        .map(|(_, info)| Wanted {
            origin: &info.origin,
            ty: &info.ty,
            place: usize::from(is_among(&on_host, &info.origin)),
            // The table may stay on the host, so it is not part of the fingerprint.
            counts: !is_table(&info.origin),
        })
        .collect();
    check_formats(&device, &wants)?;
    let placement = Placement { table: wanted, host_experts };
    let passes = DefaultPasses::new(&config, &catalog, options, placement);
    passes.warm(&device, &passes.prefill());
    let vocabulary = FileVocabulary::new(&gguf).ok();
    let suppressed = vocabulary.as_ref().map_or(0, FileVocabulary::suppressed);
    passes.warm(&device, &passes.decode(suppressed));
    let tokenizer = vocabulary.map(FileVocabulary::start);

    let mut weights = Weights::new(&device);
    let mut host = Weights::new(&Device::Cpu);
    // The table comes last: it stays on the host if space runs out.
    wants.sort_by_key(|wanted| (is_table(wanted.origin), file_position(&gguf, wanted)));
    // Reserve space first: a model that does not fit fails before gigabytes are read.
    let mut table_resident = wanted;
    let destinations = &mut [&mut weights, &mut host];
    for Wanted { origin, ty, place, .. } in &wants {
        match destinations[*place].reserve(origin, ty).await {
            Err(EngineError::OutOfMemory { .. })
                if is_table(origin) && options.table != TablePlace::Gpu =>
            {
                table_resident = false;
            }
            result => result?,
        }
    }
    wants.retain(|wanted| table_resident || !is_table(wanted.origin));
    let mut loader = Loader::new(&gguf, progress);
    loader.load(&wants, destinations).await?;
    let fingerprint = loader.fingerprint();
    weights.flush().await?;
    Ok(Inner {
        gguf: gguf.into(),
        config,
        catalog,
        device,
        weights,
        host,
        host_experts,
        tokenizer: tokenizer.and_then(Background::finish).map(Rc::new),
        template: OnceCell::new(),
        rope_factors,
        table_resident,
        fingerprint,
    })
}

/// A graph that uses every weight.
fn full_graph(config: &Config, catalog: &Catalog, table: bool) -> Graph {
    let pass = Pass {
        tokens: 1,
        input: PassInput::Token,
        table,
        output: PassOutput::Greedy,
        context: 1,
        ring: 1,
        cache: Element::F32,
        suppressed: 0,
        traced: false,
        host_experts: 0,
        blocks: false,
        hidden: false,
        short_context: None,
        pool: None,
    };
    let mut segments = decoder(config, catalog, &pass).segments;
    segments.pop().expect("a graph has a segment").graph
}

/// The tensors of the experts of the last `layers` layers.
fn host_tensors(config: &Config, catalog: &Catalog, layers: usize) -> HashSet<String> {
    let all = config.layers.len();
    (all.saturating_sub(layers)..all)
        .flat_map(|layer| expert_tensors(config, catalog, layer))
        .collect()
}

/// The tensors of a layer's experts; none if the model has no experts.
pub(super) fn expert_tensors(config: &Config, catalog: &Catalog, layer: usize) -> Vec<String> {
    let Some(experts) = expert_graph(config, catalog, layer, 1, None) else { return Vec::new() };
    experts.graph.values().filter_map(|(_, info)| info.origin.weight_name()).collect()
}

fn is_among(tensors: &HashSet<String>, origin: &Origin) -> bool {
    matches!(origin, Origin::Weight(name) if tensors.contains(name))
}

/// File part and offset of a weight's first tensor.
fn file_position(gguf: &Gguf, wanted: &Wanted<'_>) -> (usize, u64) {
    let tensors = wanted.origin.tensors(wanted.ty);
    let found = tensors.iter().filter_map(|(name, ..)| gguf.tensor(name));
    found.map(|tensor| (tensor.part(), tensor.offset())).min().unwrap_or_default()
}

fn is_table(origin: &Origin) -> bool {
    matches!(origin, Origin::Weight(name) if name == TABLE)
}

/// RoPE frequency divisors of global layers: the file's, or the family's default. In Gemma 4 only the first quarter of the pairs is
/// rotated.
async fn rope_factors(gguf: &Gguf, config: &Config) -> Result<Vec<f32>, RuntimeError> {
    let Some(head) = config.head(Kind::Global) else { return Ok(Vec::new()) };
    let pairs = head / 2;
    let Some(tensor) = gguf.tensor(ROPE_FACTORS) else {
        let unrotated = |i: usize| config.family == &GEMMA4 && i >= pairs / 4;
        let factor = |i| if unrotated(i) { 1e30 } else { config.rope.linear };
        return Ok((0..pairs).map(factor).collect());
    };
    if tensor.elements() != pairs as u64 {
        let (found, wanted) = (tensor.elements().to_string(), pairs.to_string());
        let name = ROPE_FACTORS.into();
        let keys = "half of attention.key_length";
        return Err(ModelError::WrongShape { name, found, wanted, keys }.into());
    }
    let mut factors = gguf.rows_f32(tensor, 0..tensor.rows()).await?;
    if let Some(factor) = factors.iter().find(|factor| !factor.is_finite() || **factor == 0.0) {
        let (key, value) = (ROPE_FACTORS.into(), factor.to_string());
        let why = "RoPE factors must be finite and not 0";
        return Err(ModelError::BadKey { key, value, why }.into());
    }
    factors.iter_mut().for_each(|factor| *factor *= config.rope.linear);
    Ok(factors)
}
