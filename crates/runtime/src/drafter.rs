//! A drafter loaded onto its target model's device.

use std::{ops::ControlFlow, rc::Rc};

use rullama_engine::{
    executor::Weights,
    graph::{Element, Origin, Type},
    ops::rope_table,
};
use rullama_gguf::Gguf;
use rullama_models::{
    Catalog, ModelError,
    decoder::{Inputs, Kind},
    gemma4::assistant::{DraftConfig, DraftInputs, DraftPass, PREFIX, draft},
};

use crate::{
    error::RuntimeError,
    loader::{Loader, Wanted},
    model::Model,
};

const ROPE_FACTORS: &str = "rope_freqs.weight";

/// A small model that drafts tokens for speculative decoding; cloning is cheap and shares the weights.
#[derive(Debug, Clone)]
pub struct Drafter(pub(crate) Rc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) config: DraftConfig,
    /// The drafter's tensors under [`PREFIX`], and the target model's embeddings.
    pub(crate) catalog: Catalog,
    /// Weights of both models.
    pub(crate) weights: Weights,
    /// Tokens by cluster; empty if the head scores the whole vocabulary.
    pub(crate) members: Vec<u32>,
    /// RoPE frequency divisors of global layers.
    factors: Vec<f32>,
    own_bytes: u64,
}

impl Drafter {
    /// Loads a drafter onto its model's device.
    ///
    /// # Errors
    /// If the file holds no drafter, belongs to another model, or does not fit the device.
    pub async fn load(gguf: &Gguf, model: &Model) -> Result<Self, RuntimeError> {
        let config = DraftConfig::of_file(gguf)?;
        config.check(model.config())?;
        let mut catalog = Catalog::of_file(gguf, &config.expected())?.prefixed(PREFIX);
        let embeddings = model.0.catalog.get("token_embd.weight").cloned();
        catalog.add("token_embd.weight", embeddings.expect("a model has embeddings"));
        let members = members(gguf, &config).await?;
        if let Some(clusters) = config.clusters {
            let rows = catalog.get(&format!("{PREFIX}token_embd.weight")).cloned();
            let Some(Element::Weight(dtype)) = rows.map(|ty| ty.element) else {
                unreachable!("the catalogue has the embeddings")
            };
            let shape = [clusters.count, clusters.each, config.width];
            catalog.add(DraftInputs::CLUSTERS, Type::weight(dtype, shape));
        }
        let own = own_weights(gguf, model, (&config, &catalog), &members).await?;
        let own_bytes = own.gpu_bytes();
        let weights = model.0.weights.with(&own);
        let factors = factors(gguf, &config).await?;
        Ok(Self(Rc::new(Inner { config, catalog, weights, members, factors, own_bytes })))
    }

    /// The drafter's configuration.
    pub fn config(&self) -> &DraftConfig {
        &self.0.config
    }

    /// Bytes of the drafter's weights on the GPU.
    pub fn gpu_bytes(&self) -> u64 {
        self.0.own_bytes
    }
}

impl Inner {
    /// RoPE tables at a position, by input name.
    pub(crate) fn rope_tables(&self, position: usize) -> Vec<(&'static str, Vec<f32>)> {
        let at = position as u32..position as u32 + 1;
        let rope = &self.config.rope;
        let sliding = self.config.head(Kind::Sliding).map(|head| {
            (Inputs::ROPE_SLIDING, rope_table(at.clone(), rope.sliding.into(), head, None))
        });
        let global = self.config.head(Kind::Global).map(|head| {
            let factors = Some(self.factors.as_slice());
            (Inputs::ROPE_GLOBAL, rope_table(at, rope.global.into(), head, factors))
        });
        sliding.into_iter().chain(global).collect()
    }
}

/// Loads the drafter's weights onto the target model's device.
async fn own_weights(
    gguf: &Gguf,
    model: &Model,
    (config, catalog): (&DraftConfig, &Catalog),
    members: &[u32],
) -> Result<Weights, RuntimeError> {
    let pass = DraftPass { drafts: 1, rows: 2, context: 1, ring: 1, cache: Element::F32 };
    let graph = draft(config, model.config(), catalog, &pass).graph;
    for (_, info) in graph.values() {
        model.device().check_format(&info.origin, &info.ty)?;
    }
    let mut weights = Weights::new(model.device());
    let mut wants = Vec::new();
    for (_, info) in graph.values() {
        match &info.origin {
            Origin::Weight(name) if name == DraftInputs::CLUSTERS => {
                weights.reserve(&info.origin, &info.ty).await?;
                by_cluster(gguf, members, (&mut weights, &info.origin, name)).await?;
            }
            Origin::Weight(name) if !name.starts_with(PREFIX) => {}
            origin @ (Origin::Weight(_) | Origin::Stack(_)) => {
                weights.reserve(origin, &info.ty).await?;
                wants.push(Wanted { origin, ty: &info.ty, place: 0, counts: false });
            }
            _ => {}
        }
    }
    let mut go_on = |_| ControlFlow::Continue(());
    let mut loader = Loader::new(gguf, &mut go_on).prefixed(PREFIX);
    loader.load(&wants, &mut [&mut weights]).await?;
    weights.flush().await?;
    Ok(weights)
}

/// Writes the embedding rows in cluster order: the table is read once and reordered a piece at a time.
async fn by_cluster(
    gguf: &Gguf,
    members: &[u32],
    (weights, origin, name): (&mut Weights, &Origin, &str),
) -> Result<(), RuntimeError> {
    let missing = || ModelError::MissingTensors { names: vec!["token_embd.weight".into()] };
    let tensor = gguf.tensor("token_embd.weight").ok_or_else(missing)?;
    let all = gguf.read_rows(tensor, 0..tensor.rows()).await?;
    let row = usize::try_from(tensor.row_bytes()).unwrap_or(usize::MAX);
    let piece = usize::try_from(weights.piece_bytes()).unwrap_or(usize::MAX);
    // Pieces start at multiples of four rows.
    let piece = (piece / row.max(1) / 4 * 4).max(4);
    for (first, ids) in members.chunks(piece).enumerate() {
        let sorted: Vec<u8> =
            ids.iter().flat_map(|id| &all[*id as usize * row..][..row]).copied().collect();
        weights.write(origin, name, first * piece, sorted.into())?;
    }
    Ok(())
}

/// The tokens of all clusters, checked against the vocabulary.
async fn members(gguf: &Gguf, config: &DraftConfig) -> Result<Vec<u32>, RuntimeError> {
    let (Some(_), Some(tensor)) = (config.clusters, DraftConfig::ordering(gguf)) else {
        return Ok(Vec::new());
    };
    let bytes = gguf.read_rows(tensor, 0..tensor.rows()).await?;
    // Little-endian ids of four or eight bytes.
    let each = (bytes.len() / config.vocabulary.max(1)).max(1);
    let ids: Vec<u32> = match each {
        4 | 8 => {
            bytes.chunks_exact(each).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
        }
        _ => Vec::new(),
    };
    let good =
        ids.len() == config.vocabulary && ids.iter().all(|id| (*id as usize) < config.vocabulary);
    if good {
        return Ok(ids);
    }
    let (name, format) = (tensor.name().into(), tensor.dtype().name());
    Err(ModelError::UnsupportedFormat { name, format }.into())
}

/// RoPE frequency divisors of the file, or the family's default.
async fn factors(gguf: &Gguf, config: &DraftConfig) -> Result<Vec<f32>, RuntimeError> {
    let pairs = config.head(Kind::Global).unwrap_or(0) / 2;
    match gguf.tensor(ROPE_FACTORS).filter(|tensor| tensor.elements() == pairs as u64) {
        Some(tensor) => Ok(gguf.rows_f32(tensor, 0..tensor.rows()).await?),
        None => Ok((0..pairs).map(|i| if i < pairs / 4 { 1.0 } else { 1e30 }).collect()),
    }
}
