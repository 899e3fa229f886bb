//! How a graph is written where adapters learn: every operation has a gradient, nothing is fused over one, and each adapted
//! product gets its two thin matrices.

use std::collections::{BTreeMap, HashMap};

use rullama_engine::{
    graph::{Type, Value},
    ops::{Adapter, Dropout, Slice},
};

use crate::build::{Build, Stream};

/// A weight that gets an adapter, by its name without `.weight`: `blk.0.attn_q`.
#[derive(Debug, Clone, PartialEq)]
pub struct Learned {
    /// The weight's name.
    pub name: String,
    /// Rows of `A`, columns of `B`.
    pub rank: usize,
    /// What multiplies the adapter's product: `α / r`, or `α / √r`.
    pub scale: f32,
}

/// One of an adapter's matrices, a state of the graphs that train it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The state's name: that of the weight, and `.lora_a` or `.lora_b`.
    pub name: String,
    /// `[rank, in]` or `[out, rank]`.
    pub ty: Type,
}

/// What a graph under training knows beside its weights.
#[derive(Debug)]
pub(crate) struct Training {
    adapters: BTreeMap<String, Learned>,
    dropout: f32,
    /// Parameters so far, in the order products use them.
    pub(crate) parameters: Vec<(Parameter, Value)>,
    /// Keys and values of layers that own them.
    pub(crate) keys: HashMap<usize, (Value, Value)>,
}

impl Training {
    pub(crate) fn new(adapters: &[Learned], dropout: f32) -> Self {
        let adapters = adapters.iter().map(|adapted| (adapted.name.clone(), adapted.clone()));
        Self { adapters: adapters.collect(), dropout, parameters: Vec::new(), keys: HashMap::new() }
    }
}

impl Build<'_> {
    /// Whether the graph is for training.
    pub(crate) fn trains(&self) -> bool {
        self.training.is_some()
    }

    /// Products with several weights, each with its adapter. Weights that are stored as one stay one.
    pub(crate) fn trained_products(
        &mut self,
        stream: Stream,
        names: &[&str],
    ) -> (Value, Vec<Slice>) {
        let (h, x) = self.rows(stream);
        let mut raw = Vec::new();
        for these in self.alike(names) {
            match (these, self.stack(these)) {
                ([_, _, ..], Some((weight, rows))) => {
                    let all = self.graph.linear(x, weight);
                    raw.extend(self.graph.split_columns(all, &rows));
                }
                _ => raw.extend(these.iter().map(|name| self.frozen_linear(x, name))),
            }
        }
        let each = raw.into_iter().zip(names);
        let adapted: Vec<Slice> =
            each.map(|(raw, name)| self.with_pair(raw, x, name).into()).collect();
        (h, adapted)
    }

    /// `base` and what the adapter of this weight makes of `x`, if it has one.
    pub(crate) fn with_pair(&mut self, base: Value, x: Value, name: &str) -> Value {
        let full = self.full(name);
        let Some(training) = &self.training else { return base };
        let Some(Learned { rank, scale, .. }) = training.adapters.get(&full).cloned() else {
            return base;
        };
        let dropout = training.dropout;
        let width = |value: Value| self.graph.ty(value).shape.width();
        let (a, b) = (Type::f32([rank, width(x)]), Type::f32([width(base), rank]));
        let a = self.parameter(format!("{full}.lora_a"), a);
        let b = self.parameter(format!("{full}.lora_b"), b);
        let x = if dropout > 0.0 {
            let salt = self.training.as_ref().map_or(0, |training| training.parameters.len());
            self.graph.dropout(x, Dropout { rate: dropout, salt: salt as u32 })
        } else {
            x
        };
        self.graph.lora(base, x, &Adapter { a, b, scale })
    }

    fn parameter(&mut self, name: String, ty: Type) -> Value {
        let value = self.graph.state(name.clone(), ty.clone());
        if let Some(training) = &mut self.training {
            training.parameters.push((Parameter { name, ty }, value));
        }
        value
    }
}
