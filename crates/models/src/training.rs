//! Building training graphs: every operation has a gradient, matmuls are not fused with their neighbours, and each adapted matmul gets
//! its LoRA pair.

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
    /// Factor of the adapter's output: `α / r`, or `α / √r`.
    pub scale: f32,
}

/// One of an adapter's matrices, a state of the graphs that train it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The state's name: the weight's name with `.lora_a` or `.lora_b`.
    pub name: String,
    /// `[rank, in]` or `[out, rank]`.
    pub ty: Type,
}

/// State of a training graph under construction.
#[derive(Debug)]
pub(crate) struct Training {
    adapters: BTreeMap<String, Learned>,
    dropout: f32,
    /// Parameters so far, in the order matmuls use them.
    pub(crate) parameters: Vec<(Parameter, Value)>,
    /// Keys and values of layers that compute their own.
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

    /// Matmuls with several weights, each with its adapter. Stackable weights are one matmul.
    pub(crate) fn trained_linears(
        &mut self,
        stream: Stream,
        names: &[&str],
    ) -> (Value, Vec<Slice>) {
        let (h, x) = self.rows(stream);
        let pairs: Vec<_> = names.iter().map(|name| self.lora_down(x, name)).collect();
        let mut raw = Vec::new();
        for group in self.stackable_groups(names) {
            match (group, self.stack(group)) {
                ([_, _, ..], Some((weight, rows))) => {
                    let all = self.graph.linear(x, weight);
                    raw.extend(self.graph.split_columns(all, &rows));
                }
                _ => raw.extend(group.iter().map(|name| self.frozen_linear(x, name))),
            }
        }
        let each = raw.into_iter().zip(pairs);
        let adapted: Vec<Slice> = each.map(|(raw, pair)| self.lora_up(raw, pair).into()).collect();
        (h, adapted)
    }

    /// Matmuls of one stack of weights, in columns that follow each other: without copies of them, forwards and backwards. `None` if the
    /// weights cannot be stacked, or only some have an adapter.
    pub(crate) fn trained_stack(
        &mut self,
        stream: Stream,
        names: &[&str],
    ) -> Option<(Value, Value)> {
        let (weight, _) = self.stack(names)?;
        let training = self.training.as_ref()?;
        let adapted = |name: &&&str| training.adapters.contains_key(&self.full(name));
        let adapted = names.iter().filter(adapted).count();
        if ![0, names.len()].contains(&adapted) {
            return None;
        }
        let (h, x) = self.rows(stream);
        let pairs: Vec<(Value, Adapter)> =
            names.iter().filter_map(|name| self.lora_down(x, name)).collect();
        let y = self.graph.linear(x, weight);
        let y = if pairs.is_empty() { y } else { self.graph.lora_up_columns(y, &pairs) };
        Some((h, y))
    }

    /// A matmul of `x` with a weight and its adapter.
    pub(crate) fn trained_linear(&mut self, x: Value, name: &str) -> Value {
        let pair = self.lora_down(x, name);
        let raw = self.frozen_linear(x, name);
        self.lora_up(raw, pair)
    }

    /// The down-projection `z = A x` and the adapter, if this weight has one. It comes before the weight's own matmul: in the backward pass the
    /// adapter's gradient of `x` then follows that matmul's and is added to it, and the down-projections of one `x` are adjacent.
    fn lora_down(&mut self, x: Value, name: &str) -> Option<(Value, Adapter)> {
        let full = self.full(name);
        let training = self.training.as_ref()?;
        let Learned { rank, scale, .. } = training.adapters.get(&full).cloned()?;
        let dropout = training.dropout;
        let width = |value: Value| self.graph.ty(value).shape.width();
        let (a, b) = (Type::f32([rank, width(x)]), Type::f32([self.rows_of(name), rank]));
        let a = self.parameter(format!("{full}.lora_a"), a);
        let b = self.parameter(format!("{full}.lora_b"), b);
        let x = if dropout > 0.0 {
            let salt = self.training.as_ref().map_or(0, |training| training.parameters.len());
            self.graph.dropout(x, Dropout { rate: dropout, salt: salt as u32 })
        } else {
            x
        };
        Some((self.graph.matmul_nt(x, a), Adapter { a, b, scale }))
    }

    /// `base` plus the adapter's output, if there is an adapter.
    fn lora_up(&mut self, base: Value, pair: Option<(Value, Adapter)>) -> Value {
        match pair {
            Some((z, adapter)) => self.graph.lora_up(base, z, &adapter),
            None => base,
        }
    }

    fn parameter(&mut self, name: String, ty: Type) -> Value {
        let value = self.graph.state(name.clone(), ty.clone());
        if let Some(training) = &mut self.training {
            training.parameters.push((Parameter { name, ty }, value));
        }
        value
    }
}
