//! Which weights get adapters, and what adapters begin with.

use rullama_adapter::{Adapter, Format, Pair, module};
use rullama_models::{
    Learned,
    gemma4::{gradient_of, trainable},
};
use rullama_runtime::Model;

use crate::{error::TrainError, order::Random};

/// A new adapter.
#[derive(Debug, Clone, PartialEq)]
pub struct AdapterOptions {
    /// The inner size of its pairs.
    pub rank: usize,
    /// The product of a pair is multiplied with `alpha / rank`.
    pub alpha: f32,
    /// Kinds of weights that get a pair, by their names in GGUF files or checkpoints; all projections of layers if there are none.
    pub targets: Vec<String>,
    /// Where its random numbers come from.
    pub seed: u64,
}

/// Kinds of weights in GGUF files and in checkpoints.
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
/// Kinds that get a pair if none are named.
const USUAL: usize = 7;

/// The weights of a model that these targets mean, by name without `.weight`.
///
/// # Errors
/// If the model has none of a kind.
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
        KINDS[..USUAL].iter().map(|(gguf, _)| (*gguf).to_owned()).collect()
    } else {
        targets.iter().map(named).collect::<Result<_, _>>()?
    };
    Ok(all.into_iter().filter(|name| kinds.contains(&kind_of(name))).collect())
}

/// An adapter that changes nothing yet: `A` is random, `B` is zero.
///
/// # Errors
/// If an option makes no sense, or the model has no such weights.
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
        // As PEFT does it: uniform, within one over the root of the inputs.
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

/// A pair without its numbers, which are on the device.
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

    /// Numbers of `A` and `B`.
    pub(crate) fn lengths(&self) -> [usize; 2] {
        [self.columns, self.rows].map(|side| self.experts * self.rank * side)
    }

    pub(crate) fn filled(&self, a: Vec<f32>, b: Vec<f32>) -> Pair {
        let &Self { experts, rank, rows, columns, scale, .. } = self;
        Pair { tensor: self.tensor.clone(), experts, rank, rows, columns, a, b, scale }
    }

    /// The states of `A` and `B`.
    pub(crate) fn states(&self) -> [String; 2] {
        ["lora_a", "lora_b"].map(|part| format!("{}.{part}", base(&self.tensor)))
    }

    /// The states of their gradients.
    pub(crate) fn gradient_states(&self) -> [String; 2] {
        self.states().map(|name| gradient_of(&name))
    }
}

/// The pairs of an adapter that can go on learning on this model.
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

/// What the graphs are told of an adapter.
pub(crate) fn adapted(slots: &[Slot]) -> Vec<Learned> {
    let one = |slot: &Slot| Learned {
        name: base(&slot.tensor).into(),
        rank: slot.rank,
        scale: slot.scale,
    };
    slots.iter().map(one).collect()
}

/// What a pair's gradients are called in files: `layers.0.self_attn.q_proj.lora_A` and `.lora_B`, by the module's name in checkpoints
/// without what stands before the layers.
pub fn gradient_name(tensor: &str) -> [String; 2] {
    let module = module(tensor).unwrap_or_else(|| tensor.to_owned());
    let short = module.strip_prefix("model.language_model.").unwrap_or(&module);
    [format!("{short}.lora_A"), format!("{short}.lora_B")]
}

fn base(tensor: &str) -> &str {
    tensor.strip_suffix(".weight").unwrap_or(tensor)
}
