//! The tensors a configuration requires.

use std::collections::HashSet;

use rullama_gguf::{Gguf, TensorInfo};

use super::{Config, Experts, Layer};
use crate::{error::ModelError, family::GEMMA4, tensors::Expected};

/// Weight matrices of a layer, except the experts'.
pub const MATRICES: [&str; 9] = [
    "attn_q",
    "attn_k",
    "attn_v",
    "attn_output",
    "ffn_gate",
    "ffn_up",
    "ffn_down",
    "inp_gate",
    "proj",
];

/// Additional weight matrices of a mixture-of-experts layer: router and experts.
pub const ROUTED: [&str; 5] =
    ["ffn_gate_inp", "ffn_gate_up_exps", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"];

/// Divisors of the global layers' frequencies.
pub const ROPE_FACTORS: &str = "rope_freqs.weight";

const WIDTH: &str = "embedding_length";
const HEAD: &str = "attention.key_length and key_length_swa";
const QUERIES: &str = "embedding_length, attention.head_count and attention.key_length(_swa)";
const KEYS: &str = "embedding_length, attention.head_count_kv and attention.key_length(_swa)";
const FFN: &str = "embedding_length and feed_forward_length";
const PER_LAYER: &str = "block_count and embedding_length_per_layer_input";
const EXPERTS: &str = "embedding_length, expert_count and expert_feed_forward_length";

/// A dimension of a tensor, for sizes that no key gives.
pub(crate) fn size(gguf: &Gguf, name: &str, dim: usize) -> Result<usize, ModelError> {
    let dims = gguf.tensor(name).map(TensorInfo::dims);
    let size = dims.and_then(|dims| usize::try_from(*dims.get(dim)?).ok());
    let size = size.filter(|size| (1..1 << 20).contains(size));
    size.ok_or_else(|| ModelError::MissingTensors { names: vec![name.into()] })
}

impl Config {
    /// All tensors the decoder may use.
    pub fn expected(&self) -> Vec<Expected> {
        let mut list = List(Vec::new());
        let d = self.width;
        list.add("token_embd.weight", &[self.vocabulary, d], WIDTH);
        list.may("output.weight", &[self.vocabulary, d], WIDTH);
        list.add("output_norm.weight", &[d], WIDTH);
        if let Some(per_layer) = self.per_layer {
            let all = self.layers.len() * per_layer.width;
            list.add("per_layer_token_embd.weight", &[self.vocabulary, all], PER_LAYER);
            list.add("per_layer_model_proj.weight", &[all, d], PER_LAYER);
            list.add("per_layer_proj_norm.weight", &[per_layer.width], PER_LAYER);
        }
        self.layers.iter().for_each(|layer| self.layer(&mut list, layer));
        list.0
    }

    /// Refuses tensors that the graph would ignore although they may change the model's output: all unexpected ones. Gemma 4 files hold
    /// unexpected tensors that are harmless, so only expert scales are refused there.
    ///
    /// # Errors
    /// If there is such a tensor.
    pub fn refuse_unknown<'a>(
        &self,
        names: impl Iterator<Item = &'a str>,
    ) -> Result<(), ModelError> {
        if !self.family.skips_tensors {
            return self.refuse_unexpected(names);
        }
        let scaled = |name: &&str| {
            let part = name.strip_prefix("blk.").and_then(|rest| rest.split_once('.'));
            let expert = ["ffn_gate_up_exps.scale", "ffn_gate_exps.scale", "ffn_up_exps.scale"];
            part.is_some_and(|(_, part)| expert.contains(&part))
        };
        match names.into_iter().find(scaled) {
            None => Ok(()),
            Some(name) => Err(ModelError::UnknownTensor { name: name.into() }),
        }
    }

    /// Refuses unexpected tensors, except those of encoders inside the file.
    fn refuse_unexpected<'a>(
        &self,
        names: impl Iterator<Item = &'a str>,
    ) -> Result<(), ModelError> {
        let expected: HashSet<String> =
            self.expected().into_iter().map(|expected| expected.name).collect();
        let mut biases = 0;
        for name in names {
            let encoder = name.starts_with("v.") || name.starts_with("mm.");
            if !encoder && name != ROPE_FACTORS && !expected.contains(name) {
                return Err(ModelError::UnknownTensor { name: name.into() });
            }
            biases += usize::from(name.starts_with("blk.") && name.ends_with(".bias"));
        }
        if biases != 0 && biases != 3 * self.layers.len() {
            let names = vec!["attn_q.bias, attn_k.bias or attn_v.bias of some layers".into()];
            return Err(ModelError::MissingTensors { names });
        }
        Ok(())
    }

    fn layer(&self, list: &mut List, layer: &Layer) {
        let (d, head) = (self.width, layer.head);
        let mut add = |name: &str, dims: &[usize], keys| {
            list.add(&format!("blk.{}.{name}", layer.index), dims, keys);
        };
        let queries = self.heads * head;
        let kv = layer.kv_heads * head;
        add("attn_norm.weight", &[d], WIDTH);
        add("attn_q.weight", &[queries, d], QUERIES);
        if layer.owns_cache() {
            add("attn_k.weight", &[kv, d], KEYS);
        }
        if self.family.qk_norm {
            add("attn_q_norm.weight", &[head], HEAD);
            if layer.owns_cache() {
                add("attn_k_norm.weight", &[head], HEAD);
            }
        }
        add("attn_output.weight", &[d, queries], QUERIES);
        if self.family.post_norms {
            add("post_attention_norm.weight", &[d], WIDTH);
            add("post_ffw_norm.weight", &[d], WIDTH);
        }
        add("ffn_norm.weight", &[d], WIDTH);
        add("ffn_gate.weight", &[layer.ffn, d], FFN);
        add("ffn_up.weight", &[layer.ffn, d], FFN);
        add("ffn_down.weight", &[d, layer.ffn], FFN);
        if let Some(per_layer) = self.per_layer {
            add("inp_gate.weight", &[per_layer.width, d], PER_LAYER);
            add("proj.weight", &[d, per_layer.width], PER_LAYER);
            add("post_norm.weight", &[d], WIDTH);
        }
        if self.family != &GEMMA4 {
            self.dense(list, layer);
            return;
        }
        let mut may = |name: &str, dims: &[usize], keys| {
            list.may(&format!("blk.{}.{name}", layer.index), dims, keys);
        };
        may("layer_output_scale.weight", &[1], WIDTH);
        // Files converted from narrow float formats scale whole matrices.
        MATRICES.iter().for_each(|name| may(&format!("{name}.scale"), &[1], WIDTH));
        if layer.owns_cache() {
            // Without it, the raw keys are the values.
            may("attn_v.weight", &[kv, d], KEYS);
        }
        if let Some(experts) = self.experts {
            self.experts(list, layer.index, experts);
        }
    }

    /// Additional tensors of layers of other families.
    fn dense(&self, list: &mut List, layer: &Layer) {
        let at = |name: &str| format!("blk.{}.{name}", layer.index);
        let (queries, kv) = (self.heads * layer.head, layer.kv_heads * layer.head);
        list.add(&at("attn_v.weight"), &[kv, self.width], KEYS);
        // All three, or none.
        let [q, k, v] = ["attn_q.bias", "attn_k.bias", "attn_v.bias"].map(at);
        list.may(&q, &[queries], QUERIES);
        list.may(&k, &[kv], KEYS);
        list.may(&v, &[kv], KEYS);
    }

    fn experts(&self, list: &mut List, index: usize, experts: Experts) {
        let (d, Experts { count, width, .. }) = (self.width, experts);
        let mut add = |name: &str, dims: &[usize]| {
            list.add(&format!("blk.{index}.{name}"), dims, EXPERTS);
        };
        add("ffn_gate_inp.weight", &[count, d]);
        add("ffn_gate_inp.scale", &[d]);
        add("ffn_down_exps.weight", &[count, d, width]);
        let at = |name: &str| format!("blk.{index}.{name}");
        // Gate and up projections of an expert are one tensor or two.
        let separate = ["ffn_gate_exps.weight", "ffn_up_exps.weight"];
        list.or(
            &at("ffn_gate_up_exps.weight"),
            &[count, 2 * width, d],
            EXPERTS,
            separate.map(at).into(),
        );
        for name in separate {
            list.may(&at(name), &[count, width, d], EXPERTS);
        }
        // Without them, every expert's scale is 1.
        for name in ["ffn_down_exps.scale", "ffn_gate_inp.per_expert_scale"] {
            list.may(&at(name), &[count], EXPERTS);
        }
        // Two spellings each.
        for (name, other) in [
            ("pre_ffw_norm_2.weight", "ffn_pre_norm_2.weight"),
            ("post_ffw_norm_1.weight", "ffn_post_norm_1.weight"),
            ("post_ffw_norm_2.weight", "ffn_post_norm_2.weight"),
        ] {
            list.or(&at(name), &[d], EXPERTS, vec![at(other)]);
            list.may(&at(other), &[d], EXPERTS);
        }
    }
}

/// Builder of a list of expected tensors.
pub(crate) struct List(pub(crate) Vec<Expected>);

impl List {
    pub(crate) fn add(&mut self, name: &str, dims: &[usize], keys: &'static str) {
        self.0.push(Expected {
            name: name.into(),
            dims: dims.into(),
            keys,
            optional: false,
            instead: Vec::new(),
            flat: false,
        });
    }

    pub(crate) fn may(&mut self, name: &str, dims: &[usize], keys: &'static str) {
        self.0.push(Expected {
            name: name.into(),
            dims: dims.into(),
            keys,
            optional: true,
            instead: Vec::new(),
            flat: false,
        });
    }

    /// A tensor, or others that together replace it.
    fn or(&mut self, name: &str, dims: &[usize], keys: &'static str, instead: Vec<String>) {
        let (name, dims) = (name.into(), dims.into());
        self.0.push(Expected { name, dims, keys, optional: false, instead, flat: false });
    }

    /// A convolution kernel.
    pub(crate) fn flat(&mut self, name: &str, dims: &[usize], keys: &'static str) {
        let (name, dims) = (name.into(), dims.into());
        self.0.push(Expected {
            name,
            dims,
            keys,
            optional: false,
            instead: Vec::new(),
            flat: true,
        });
    }
}
