//! Selects the weights that get LoRA pairs, and initialises the pairs.

use rullama_adapter::{Adapter, Format, Pair, module};
use rullama_models::{
    Learned,
    decoder::{gradient_of, trainable},
};
use rullama_runtime::Model;

use crate::{error::TrainError, order::Random};

/// Options of a new adapter.
#[derive(Debug, Clone, PartialEq)]
pub struct AdapterOptions {
    /// Rank of its pairs.
    pub rank: usize,
    /// `B A` is scaled by `alpha / rank`.
    pub alpha: f32,
    /// Kinds of weights that get a pair, by their GGUF or checkpoint names; empty for all projections of the layers.
    pub targets: Vec<String>,
    /// Seed of the initial values of `A`.
    pub seed: u64,
}

/// Kinds of weights: GGUF name, checkpoint name.
const KINDS: [(&str, &str); 10] = [
    ("attn_q", "q_proj"),
    ("attn_k", "k_proj"),
    ("attn_v", "v_proj"),
    ("attn_output", "o_proj"),
    ("ffn_gate", "gate_proj"),
    ("ffn_up", "up_proj"),
    ("ffn_down", "down_proj"),
    ("inp_gate", "per_layer_input_gate"),
    ("proj", "per_layer_projection"),
    ("per_layer_model_proj", "per_layer_model_projection"),
];
/// The first so many of [`KINDS`] are the default targets.
const DEFAULT_TARGETS: usize = 7;

/// The names, without `.weight`, of a model's weights that `targets` select.
///
/// # Errors
/// If the model has no weight of a kind.
pub fn weights_of(model: &Model, targets: &[String]) -> Result<Vec<String>, TrainError> {
    let all = trainable(model.config(), model.catalog());
    let kind_of = |name: &str| name.rsplit('.').next().unwrap_or(name).to_owned();
    let named = |target: &String| {
        let known = KINDS.iter().find(|(gguf, peft)| target == gguf || target == peft);
        let kind = known.map_or(target.as_str(), |(gguf, _)| gguf);
        if all.iter().any(|name| kind_of(name) == kind) {
            return Ok(kind.to_owned());
        }
        let mut known: Vec<String> = all.iter().map(|name| kind_of(name)).collect();
        known.sort_unstable();
        known.dedup();
        Err(TrainError::NoSuchTarget { target: target.clone(), known: known.join(", ") })
    };
    let kinds: Vec<String> = if targets.is_empty() {
        KINDS[..DEFAULT_TARGETS].iter().map(|(gguf, _)| (*gguf).to_owned()).collect()
    } else {
        targets.iter().map(named).collect::<Result<_, _>>()?
    };
    Ok(all.into_iter().filter(|name| kinds.contains(&kind_of(name))).collect())
}

/// A new adapter without effect: `A` is random, `B` is zero.
///
/// # Errors
/// If an option is out of range, or the model has no such weights.
pub fn fresh(model: &Model, options: &AdapterOptions) -> Result<Adapter, TrainError> {
    if options.rank == 0 || options.rank > 1024 {
        let (option, value) = ("the rank", options.rank.to_string());
        return Err(TrainError::Option { option, value, wanted: "choose 1 to 1024" });
    }
    if !options.alpha.is_finite() || options.alpha <= 0.0 {
        let (option, value) = ("alpha", options.alpha.to_string());
        return Err(TrainError::Option { option, value, wanted: "choose a number above 0" });
    }
    let mut pairs = Vec::new();
    for (stream, name) in (0u64..).zip(weights_of(model, &options.targets)?) {
        let tensor = format!("{name}.weight");
        let Some(ty) = model.catalog().get(&tensor) else { continue };
        let (rows, columns) = (ty.shape.rows(), ty.shape.width());
        // PEFT's initialisation: uniform in ±1/√columns.
        let bound = (columns as f64).sqrt().recip();
        let mut random = Random::new(options.seed, stream);
        let a = (0..options.rank * columns).map(|_| ((random.unit() * 2.0 - 1.0) * bound) as f32);
        pairs.push(Pair {
            tensor,
            experts: 1,
            rank: options.rank,
            rows,
            columns,
            a: a.collect(),
            b: vec![0.0; rows * options.rank],
            scale: options.alpha / options.rank as f32,
        });
    }
    pairs.sort_by(|a, b| a.tensor.cmp(&b.tensor));
    Ok(Adapter {
        name: "a new adapter".into(),
        format: Format::Peft,
        architecture: None,
        base_model: None,
        pairs,
        ignored: Vec::new(),
    })
}

/// A LoRA pair without its values, which are on the device.
#[derive(Debug, Clone)]
pub(crate) struct Slot {
    pub(crate) tensor: String,
    pub(crate) experts: usize,
    pub(crate) rank: usize,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) scale: f32,
}

impl Slot {
    pub(crate) fn of(pair: &Pair) -> Self {
        let &Pair { experts, rank, rows, columns, scale, .. } = pair;
        Self { tensor: pair.tensor.clone(), experts, rank, rows, columns, scale }
    }

    /// Elements of `A` and `B`.
    pub(crate) fn lengths(&self) -> [usize; 2] {
        [self.columns, self.rows].map(|side| self.experts * self.rank * side)
    }

    pub(crate) fn filled(&self, a: Vec<f32>, b: Vec<f32>) -> Pair {
        let &Self { experts, rank, rows, columns, scale, .. } = self;
        Pair { tensor: self.tensor.clone(), experts, rank, rows, columns, a, b, scale }
    }

    /// Names of the graph states of `A` and `B`.
    pub(crate) fn states(&self) -> [String; 2] {
        ["lora_a", "lora_b"].map(|part| format!("{}.{part}", base(&self.tensor)))
    }

    /// Names of the graph states of their gradients.
    pub(crate) fn gradient_states(&self) -> [String; 2] {
        self.states().map(|name| gradient_of(&name))
    }
}

/// The pairs of an adapter that can be trained on this model.
pub(crate) fn fitting<'a>(
    model: &Model,
    adapter: &'a Adapter,
) -> Result<Vec<&'a Pair>, TrainError> {
    let pairs = model.fit(adapter)?.pairs;
    let all = trainable(model.config(), model.catalog());
    let fixed = |pair: &&&Pair| !all.iter().any(|name| name == base(&pair.tensor));
    let fixed: Vec<&str> = pairs.iter().filter(fixed).map(|pair| pair.tensor.as_str()).collect();
    if let [first, ..] = *fixed {
        return Err(TrainError::NotTrained { count: fixed.len(), first: first.into() });
    }
    Ok(pairs)
}

/// The pairs as the training graph describes them.
pub(crate) fn adapted(slots: &[Slot]) -> Vec<Learned> {
    let one = |slot: &Slot| Learned {
        name: base(&slot.tensor).into(),
        rank: slot.rank,
        scale: slot.scale,
    };
    slots.iter().map(one).collect()
}

/// Names of a pair's gradients in files: `layers.0.self_attn.q_proj.lora_A` and `.lora_B`, after the checkpoint's module without the
/// prefix before `layers`.
pub fn gradient_name(tensor: &str) -> [String; 2] {
    let module = module(tensor).unwrap_or_else(|| tensor.to_owned());
    let short = module.strip_prefix("model.language_model.").unwrap_or(&module);
    [format!("{short}.lora_A"), format!("{short}.lora_B")]
}

fn base(tensor: &str) -> &str {
    tensor.strip_suffix(".weight").unwrap_or(tensor)
}
