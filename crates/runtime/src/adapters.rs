//! LoRA adapters attached to a loaded model: several at once, each with its own weight, exchangeable between two generations without
//! reloading the model.

mod factors;
mod folded;
mod row_order;
mod slots;

use std::{
    collections::BTreeMap,
    rc::{Rc, Weak},
};

use rullama_adapter::{Adapter, EMBEDDING, Fit, HEAD, Pair, Target, Weighted, combine};
use rullama_engine::{
    executor::{Device, Weights},
    graph::{Element, Graph},
};
use rullama_gguf::{DType, Gguf};
use rullama_models::{
    Adapted, Catalog, FactorGroup,
    decoder::{
        Config, MATRICES, Pass, PassInput, PassOutput, ROUTED, adapted_decoder, expert_graph,
    },
};
use sha2::{Digest, Sha256};

use crate::{error::RuntimeError, model::Model};

pub use row_order::file_order;
pub(crate) use slots::{MAX_SLOTS, SlotWeights};

/// How the factors of adapters are kept on a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FactorType {
    /// 32-bit floats.
    F32,
    /// 16-bit floats: half the bytes to read per token. The CPU always uses F32.
    #[default]
    F16,
}

/// Adapters attached to a model, for its sessions; cloning is cheap and shares the factors.
#[derive(Debug, Clone)]
pub struct Adapters(Rc<Attached>);

#[derive(Debug)]
struct Attached {
    model: Model,
    /// The model's weights and the factors.
    weights: Weights,
    /// Weights and factors of the experts that stay on the host.
    host: Weights,
    adapted: Adapted,
    /// The pairs of all adapters, combined: requests that share passes need them in other weights.
    pairs: Vec<Pair>,
    gpu_bytes: u64,
    fingerprint: [u8; 32],
    without_effect: Vec<String>,
}

/// The LoRA pairs of an adapter that change a model, judged by the file's header.
///
/// # Errors
/// If it belongs to another model; the error lists all mismatches.
pub fn fit_to<'a>(gguf: &Gguf, adapter: &'a Adapter) -> Result<Fit<'a>, RuntimeError> {
    let config = Config::of_file(gguf)?;
    let catalog = Catalog::of_file(gguf, &config.expected())?;
    let architecture = gguf.str("general.architecture")?;
    Ok(adapter.fit(architecture, |tensor| target(&config, &catalog, tensor))?)
}

impl Model {
    /// The LoRA pairs of an adapter that change this model.
    ///
    /// # Errors
    /// If it belongs to another model; the error lists all mismatches.
    pub fn fit<'a>(&self, adapter: &'a Adapter) -> Result<Fit<'a>, RuntimeError> {
        let architecture = self.gguf().str("general.architecture")?;
        Ok(adapter.fit(architecture, |tensor| target(&self.0.config, &self.0.catalog, tensor))?)
    }

    /// Attaches adapters to this model for its sessions, each with a weight.
    ///
    /// # Errors
    /// If one does not fit the model, or there is no memory.
    pub async fn attach(
        &self,
        adapters: &[(&Adapter, f32)],
        factors: FactorType,
    ) -> Result<Adapters, RuntimeError> {
        let (mut pairs, mut without_effect) = (Vec::new(), Vec::new());
        let adapters: Vec<_> =
            adapters.iter().map(|(adapter, weight)| (self.file_order(adapter), weight)).collect();
        for (adapter, weight) in &adapters {
            let fit = self.fit(adapter)?;
            pairs.extend(fit.pairs.into_iter().map(|pair| Weighted { pair, weight: **weight }));
            without_effect.extend(fit.without_effect.into_iter().map(str::to_owned));
        }
        let pairs = combine(&pairs);
        let on_gpu = matches!(self.device(), Device::Gpu(_));
        let dtype = if on_gpu && factors == FactorType::F16 { DType::F16 } else { DType::F32 };
        let ranks = pairs.iter().map(|pair| (pair.tensor.clone(), pair.rank)).collect();
        let adapted = Adapted { ranks, dtype, fold: folded::supported(self.device()), slots: None };
        let own = self.upload(&adapted, &pairs).await?;
        let host = self.keep_on_host(&adapted, &pairs).await?;
        let mut hash = Sha256::new();
        for pair in &pairs {
            hash.update(&pair.tensor);
            pair.a.iter().chain(&pair.b).for_each(|value| hash.update(value.to_le_bytes()));
        }
        Ok(Adapters(Rc::new(Attached {
            model: self.clone(),
            weights: self.0.weights.with(&own),
            host: self.0.host.with(&host),
            adapted,
            pairs,
            gpu_bytes: own.gpu_bytes(),
            fingerprint: hash.finalize().into(),
            without_effect,
        })))
    }

    /// Uploads the factors to the device, as the decode graph reads them.
    async fn upload(&self, adapted: &Adapted, pairs: &[Pair]) -> Result<Weights, RuntimeError> {
        let pass = Pass {
            tokens: 1,
            input: PassInput::Ids,
            table: false,
            output: PassOutput::Logits,
            context: 1,
            ring: 1,
            cache: Element::F32,
            suppressed: 0,
            traced: false,
            host_experts: self.host_experts(),
            blocks: false,
            hidden: false,
            short_context: None,
            pool: None,
        };
        let decoder = adapted_decoder(&self.0.config, &self.0.catalog, &pass, Some(adapted));
        let mut own = Weights::new(self.device());
        let graphs = decoder.segments.iter().map(|segment| &segment.graph);
        write(&mut own, graphs.clone(), &decoder.factors, pairs).await?;
        self.write_folded(&mut own, &decoder, (adapted.dtype, pairs)).await?;
        own.flush().await?;
        Ok(own)
    }

    /// Stores the factors of experts that stay on the host.
    async fn keep_on_host(
        &self,
        adapted: &Adapted,
        pairs: &[Pair],
    ) -> Result<Weights, RuntimeError> {
        let (config, catalog) = (&self.0.config, &self.0.catalog);
        let mut own = Weights::new(&Device::Cpu);
        let all = config.layers.len();
        for layer in all - self.host_experts().min(all)..all {
            if let Some(experts) = expert_graph(config, catalog, layer, 1, Some(adapted)) {
                write(&mut own, [&experts.graph].into_iter(), &experts.factors, pairs).await?;
            }
        }
        Ok(own)
    }
}

/// Writes the factors that graphs use.
async fn write<'a>(
    own: &mut Weights,
    graphs: impl Iterator<Item = &'a Graph> + Clone,
    groups: &[FactorGroup],
    pairs: &[Pair],
) -> Result<(), RuntimeError> {
    let pairs: BTreeMap<&str, _> = pairs.iter().map(|p| (p.tensor.as_str(), p)).collect();
    for group in groups {
        let stacked = factors::of_group(group, &pairs);
        let transposed: Vec<_> = group
            .b_transposed
            .iter()
            .map(|name| (name, factors::transposed(&stacked.b, group.rank)))
            .collect();
        let both = [(&group.a, stacked.a), (&group.b, stacked.b)];
        for (name, values) in both.into_iter().chain(transposed) {
            write_one(own, graphs.clone(), name, &values).await?;
        }
    }
    Ok(())
}

/// Writes a weight that graphs use in addition to the model's.
async fn write_one<'a>(
    own: &mut Weights,
    graphs: impl Iterator<Item = &'a Graph>,
    name: &str,
    elements: &[f32],
) -> Result<(), RuntimeError> {
    let mut values = graphs.flat_map(Graph::values);
    let known = values.find(|(_, info)| info.origin.weight_name().as_deref() == Some(name));
    let (_, info) = known.expect("the graph has a weight for each factor");
    own.reserve(&info.origin, &info.ty).await?;
    let Element::Weight(dtype) = info.ty.element else { unreachable!("factors are weights") };
    let bytes = rullama_gguf::quant::quantize(dtype, elements)?;
    own.write(&info.origin, name, 0, bytes.into())?;
    Ok(())
}

/// The adapter target of a tensor name.
fn target(config: &Config, catalog: &Catalog, tensor: &str) -> Target {
    if tensor == EMBEDDING || tensor == HEAD {
        return Target::Matrix { experts: 1, rows: config.vocabulary, columns: config.width };
    }
    let layer = tensor.strip_prefix("blk.").and_then(|rest| rest.split_once('.'));
    let of_layer = layer.and_then(|(number, rest)| {
        let layer = config.layers.get(number.parse::<usize>().ok()?)?;
        let name = rest.strip_suffix(".weight")?;
        (MATRICES.contains(&name) || ROUTED.contains(&name)).then_some((layer, name))
    });
    match of_layer {
        Some((layer, "attn_k" | "attn_v")) if !layer.owns_cache() => return Target::Unused,
        None if tensor != "per_layer_model_proj.weight" => return Target::Absent,
        _ => {}
    }
    match catalog.get(tensor) {
        None => Target::Absent,
        Some(ty) => match *ty.shape.dims() {
            [experts, rows, columns] => Target::Matrix { experts, rows, columns },
            _ => Target::Matrix { experts: 1, rows: ty.shape.rows(), columns: ty.shape.width() },
        },
    }
}

/// Attached adapters that others may drop.
#[derive(Debug, Clone)]
pub(crate) struct WeakAdapters(Weak<Attached>);

impl WeakAdapters {
    /// The adapters, if they still exist.
    pub(crate) fn upgrade(&self) -> Option<Adapters> {
        self.0.upgrade().map(Adapters)
    }

    /// Whether these are the adapters.
    pub(crate) fn is(&self, adapters: &Adapters) -> bool {
        std::ptr::eq(self.0.as_ptr(), Rc::as_ptr(&adapters.0))
    }
}

/// Compares by identity: clones of the same attached adapters are equal.
impl PartialEq for Adapters {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl Adapters {
    /// Bytes of the factors on the GPU.
    pub fn gpu_bytes(&self) -> u64 {
        self.0.gpu_bytes
    }

    /// Adapted tensors that the model does not use: K and V projections of layers that share another layer's KV cache.
    pub fn without_effect(&self) -> &[String] {
        &self.0.without_effect
    }

    /// Whether both are clones of the same attached adapters.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// A reference that does not keep the factors.
    pub(crate) fn downgrade(&self) -> WeakAdapters {
        WeakAdapters(Rc::downgrade(&self.0))
    }

    pub(crate) fn adapted(&self) -> &Adapted {
        &self.0.adapted
    }

    pub(crate) fn weights(&self) -> &Weights {
        &self.0.weights
    }

    /// Weights of the experts that stay on the host.
    pub(crate) fn host_weights(&self) -> &Weights {
        &self.0.host
    }

    pub(crate) fn fingerprint(&self) -> [u8; 32] {
        self.0.fingerprint
    }

    /// Whether the adapters change the token embedding lookup.
    pub(crate) fn change_lookup(&self) -> bool {
        self.0.adapted.ranks.contains_key(EMBEDDING)
    }

    /// Checks that the adapters are attached to this model.
    pub(crate) fn check(&self, model: &Model) -> Result<(), RuntimeError> {
        if Rc::ptr_eq(&self.0.model.0, &model.0) {
            return Ok(());
        }
        Err(RuntimeError::OtherModelsAdapters)
    }
}
