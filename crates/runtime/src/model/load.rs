//! From a file to weights on a device, piece by piece.

use std::{collections::HashSet, ops::ControlFlow};

use rullama_engine::{
    EngineError,
    executor::{Device, Weights},
    gpu::Fence,
    graph::{Element, Graph, Origin, Type},
};
use rullama_gguf::{DType, Gguf, TensorInfo};
use rullama_models::{
    Catalog, ModelError,
    gemma4::{Config, Feed, Kind, Pass, Want, decoder, expert_list},
};
use sha2::{Digest, Sha256};

use super::{CacheType, Inner, memory::MemoryUse, warm::warm};
use crate::{error::RuntimeError, vocabulary};

/// The table of per-layer inputs, in the models that have one.
pub(super) const TABLE: &str = "per_layer_token_embd.weight";
/// Divisors of the global layers' frequencies.
const ROPE_FACTORS: &str = "rope_freqs.weight";
/// Pieces start at multiples of this many rows.
const ROW_STEP: u64 = 4;
/// Bytes queued for the device between two marks. We wait for the mark before the last one: host memory stays small, and the device
/// has work while we wait.
const QUEUED: u64 = 32 << 20;
/// How much of each tensor goes into the fingerprint.
const FINGERPRINT_BYTES: usize = 4096;

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

/// How far loading is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes read.
    pub done: u64,
    /// Bytes to read.
    pub total: u64,
}

type OnProgress<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;

pub(super) async fn load(
    gguf: Gguf,
    device: Device,
    options: &LoadOptions,
    progress: OnProgress<'_>,
) -> Result<Inner, RuntimeError> {
    let config = Config::of_file(&gguf)?;
    let catalog = Catalog::of_file(&gguf, &config.expected())?;
    config.refuse_unknown(gguf.tensors().iter().map(TensorInfo::name))?;
    let tokenizer = vocabulary::tokenizer(&gguf).ok();
    let rope_factors = rope_factors(&gguf, &config).await?;
    let need = MemoryUse::estimate(&config, &catalog, options);
    let wanted = need.table_wanted(&device, options)?;

    let host_experts = if matches!(device, Device::Gpu(_)) { need.host_experts } else { 0 };
    let on_host = host_tensors(&config, &catalog, host_experts);
    warm(&device, &config, &catalog, options, (wanted, host_experts));

    let mut weights = Weights::new(&device);
    let mut host = Weights::new(&Device::Cpu);
    let list = full_list(&config, &catalog, wanted);
    let mut wants: Vec<(&Origin, &Type)> = list
        .values()
        .filter(|(_, info)| info.origin.weight_name().is_some())
        .map(|(_, info)| (&info.origin, &info.ty))
        .collect();
    // In file order, so that a slow source is read from front to back; the table may stay behind.
    wants.sort_by_key(|(origin, ty)| (is_table(origin), place(&gguf, origin, ty)));
    // Room first: a model that does not fit is refused before gigabytes are read.
    let mut table_resident = wanted;
    for (origin, ty) in &wants {
        let place = if is_among(&on_host, origin) { &mut host } else { &mut weights };
        match place.reserve(origin, ty).await {
            Err(EngineError::OutOfMemory { .. })
                if is_table(origin) && options.table == TablePlace::Auto =>
            {
                table_resident = false;
            }
            result => result?,
        }
    }
    wants.retain(|(origin, _)| table_resident || !is_table(origin));
    let tensors = wants.iter().flat_map(|(origin, ty)| origin.tensors(ty));
    let bytes = |name: &str| gguf.tensor(name).map_or(0, TensorInfo::nbytes);
    let total = tensors.map(|(name, ..)| bytes(name)).sum();
    let hash = Sha256::new();
    let mut loader = Loader { gguf: &gguf, progress, done: 0, total, hash, queued: 0, mark: None };
    for (origin, ty) in wants {
        let place = if is_among(&on_host, origin) { &mut host } else { &mut weights };
        for (name, first, ty) in origin.tensors(ty) {
            loader.tensor(place, origin, Rows { name, first, ty: &ty }).await?;
        }
    }
    let fingerprint = loader.hash.finalize().into();
    weights.settle().await?;
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

/// A list that uses every weight.
fn full_list(config: &Config, catalog: &Catalog, table: bool) -> Graph {
    let pass = Pass {
        tokens: 1,
        feed: Feed::Token,
        table,
        want: Want::Greedy,
        context: 1,
        ring: 1,
        cache: Element::F32,
        suppressed: 0,
        traced: false,
        host_experts: 0,
        blocks: false,
        hidden: false,
    };
    let mut segments = decoder(config, catalog, &pass).segments;
    segments.pop().expect("a list has a segment").graph
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
    let Some(list) = expert_list(config, catalog, layer, 1) else { return Vec::new() };
    list.graph.values().filter_map(|(_, info)| info.origin.weight_name()).collect()
}

fn is_among(tensors: &HashSet<String>, origin: &Origin) -> bool {
    matches!(origin, Origin::Weight(name) if tensors.contains(name))
}

fn is_table(origin: &Origin) -> bool {
    matches!(origin, Origin::Weight(name) if name == TABLE)
}

/// Where a weight begins: its part of the model, and the place in that file.
fn place(gguf: &Gguf, origin: &Origin, ty: &Type) -> (usize, u64) {
    let tensors = origin.tensors(ty);
    let places = tensors.iter().filter_map(|(name, ..)| gguf.tensor(name));
    places.map(|tensor| (tensor.part(), tensor.offset())).min().unwrap_or_default()
}

/// A tensor and where its rows begin in its weight.
struct Rows<'a> {
    name: &'a str,
    first: usize,
    ty: &'a Type,
}

struct Loader<'a> {
    gguf: &'a Gguf,
    progress: OnProgress<'a>,
    done: u64,
    total: u64,
    hash: Sha256,
    queued: u64,
    /// Behind all but the last bytes that were queued.
    mark: Option<Fence>,
}

impl Loader<'_> {
    /// Brings one tensor to where it is wanted.
    async fn tensor(
        &mut self,
        weights: &mut Weights,
        origin: &Origin,
        Rows { name, first: offset, ty }: Rows<'_>,
    ) -> Result<(), RuntimeError> {
        let tensor = self.gguf.tensor(name).expect("the catalogue was made from this file");
        // The table may or may not be loaded, so it is no part of the fingerprint.
        let counts = !is_table(origin);
        if counts {
            self.hash.update(name);
        }
        if ty.element == Element::Weight(DType::F32) && tensor.dtype() != DType::F32 {
            let numbers = self.gguf.rows_f32(tensor, 0..tensor.rows()).await?;
            let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
            weights.write(origin, name, offset, bytes.into())?;
            return self.report(tensor.nbytes());
        }
        let rows = (weights.piece_bytes() / tensor.row_bytes().max(1)).max(1);
        let rows = rows.next_multiple_of(ROW_STEP).min(tensor.rows());
        let mut first = 0;
        while first < tensor.rows() {
            let end = (first + rows).min(tensor.rows());
            let bytes = self.gguf.read_rows(tensor, first..end).await?;
            if first == 0 && counts {
                self.hash.update(&bytes[..bytes.len().min(FINGERPRINT_BYTES)]);
            }
            let length = bytes.len() as u64;
            // Fits: the tensor's rows were checked against its shape.
            let row = offset + usize::try_from(first).unwrap_or(0);
            weights.write(origin, name, row, bytes)?;
            self.queued += length;
            if self.queued >= QUEUED {
                let before = std::mem::replace(&mut self.mark, weights.fence()?);
                if let Some(mark) = before {
                    mark.wait().await?;
                }
                self.queued = 0;
            }
            self.report(length)?;
            first = end;
        }
        Ok(())
    }

    fn report(&mut self, bytes: u64) -> Result<(), RuntimeError> {
        self.done += bytes;
        match (self.progress)(Progress { done: self.done, total: self.total }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(RuntimeError::Cancelled),
        }
    }
}

/// The file's divisors, or the family's: the first quarter of the pairs turns, the others stand still.
async fn rope_factors(gguf: &Gguf, config: &Config) -> Result<Vec<f32>, RuntimeError> {
    let Some(head) = config.head(Kind::Global) else { return Ok(Vec::new()) };
    let pairs = head / 2;
    let Some(tensor) = gguf.tensor(ROPE_FACTORS) else {
        return Ok((0..pairs).map(|i| if i < pairs / 4 { 1.0 } else { 1e30 }).collect());
    };
    if tensor.elements() != pairs as u64 {
        let (found, wanted) = (tensor.elements().to_string(), pairs.to_string());
        let name = ROPE_FACTORS.into();
        let keys = "half of attention.key_length";
        return Err(ModelError::WrongShape { name, found, wanted, keys }.into());
    }
    Ok(gguf.rows_f32(tensor, 0..tensor.rows()).await?)
}
