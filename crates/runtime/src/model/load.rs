//! From a file to weights on a device, piece by piece.

use std::{collections::HashSet, rc::Rc};

use rullama_engine::{
    EngineError,
    executor::{Device, Weights},
    graph::{Element, Graph, Origin},
};
use rullama_gguf::{Gguf, TensorInfo};
use rullama_models::{
    Catalog, ModelError,
    family::GEMMA4,
    gemma4::{Config, Kind, Pass, PassInput, PassOutput, ROPE_FACTORS, decoder, expert_graph},
};

use super::{
    CacheType, Inner,
    memory::MemoryUse,
    passes::{Placement, UsualPasses},
};
use crate::{
    error::RuntimeError,
    loader::{Loader, OnProgress, Wanted, check_formats},
    vocabulary,
};

/// The table of per-layer inputs, in the models that have one.
pub(super) const TABLE: &str = "per_layer_token_embd.weight";

/// How to load.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// Where the table of per-layer inputs goes.
    pub table: TablePlace,
    /// GPU memory that may be used; without it, the device decides.
    pub gpu_budget: Option<u64>,
    /// Context the memory is planned for; the sessions' own may differ.
    pub context: Option<usize>,
    /// Caches the memory is planned for.
    pub cache: CacheType,
    /// How many of the last layers keep their experts on the host, which computes them; without it, as many as the budget asks
    /// for. Nothing for models without experts and on the CPU.
    pub host_experts: Option<usize>,
}

/// Where the table of per-layer inputs goes: it is the largest tensor of the small models, and a token reads one row of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TablePlace {
    /// On a graphics card of its own memory if it fits there, else on the host.
    #[default]
    Auto,
    /// It stays in the file; a token's row is fetched when it is needed.
    Host,
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
            // The table may or may not be loaded, so it is no part of the fingerprint.
            counts: !is_table(&info.origin),
        })
        .collect();
    check_formats(&device, &wants)?;
    let placement = Placement { table: wanted, host_experts };
    let passes = UsualPasses::new(&config, &catalog, options, placement);
    passes.warm(&device, &passes.prefill());
    // A third of a second of this thread, while others compile.
    let tokenizer = vocabulary::tokenizer(&gguf).ok().map(Rc::new);
    let suppressed = tokenizer.as_ref().map_or(0, |tokenizer| tokenizer.suppressed().len());
    passes.warm(&device, &passes.decode(suppressed));

    let mut weights = Weights::new(&device);
    let mut host = Weights::new(&Device::Cpu);
    // The table comes last: it is what there may be no space for.
    wants.sort_by_key(|wanted| (is_table(wanted.origin), begin(&gguf, wanted)));
    // Space first: a model that does not fit is refused before gigabytes are read.
    let mut table_resident = wanted;
    let places = &mut [&mut weights, &mut host];
    for Wanted { origin, ty, place, .. } in &wants {
        match places[*place].reserve(origin, ty).await {
            Err(EngineError::OutOfMemory { .. })
                if is_table(origin) && options.table == TablePlace::Auto =>
            {
                table_resident = false;
            }
            result => result?,
        }
    }
    wants.retain(|wanted| table_resident || !is_table(wanted.origin));
    let mut loader = Loader::new(&gguf, progress);
    loader.load(&wants, places).await?;
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
        tokenizer,
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

/// Where a weight begins: its part of the model, and the place in that file.
fn begin(gguf: &Gguf, wanted: &Wanted<'_>) -> (usize, u64) {
    let tensors = wanted.origin.tensors(wanted.ty);
    let places = tensors.iter().filter_map(|(name, ..)| gguf.tensor(name));
    places.map(|tensor| (tensor.part(), tensor.offset())).min().unwrap_or_default()
}

fn is_table(origin: &Origin) -> bool {
    matches!(origin, Origin::Weight(name) if name == TABLE)
}

/// Divisors of the global layers' frequencies: the file's, or the family's. Of Gemma 4, the first quarter of the pairs turns, the others
/// stand still.
async fn rope_factors(gguf: &Gguf, config: &Config) -> Result<Vec<f32>, RuntimeError> {
    let Some(head) = config.head(Kind::Global) else { return Ok(Vec::new()) };
    let pairs = head / 2;
    let Some(tensor) = gguf.tensor(ROPE_FACTORS) else {
        let still = |i: usize| config.family == &GEMMA4 && i >= pairs / 4;
        let factor = |i| if still(i) { 1e30 } else { config.rope.linear };
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
        let why = "divisors of frequencies must be finite and not 0";
        return Err(ModelError::BadKey { key, value, why }.into());
    }
    factors.iter_mut().for_each(|factor| *factor *= config.rope.linear);
    Ok(factors)
}
