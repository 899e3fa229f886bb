//! Graph builder: operations, a scope for tensor names, and the tensors of the model.

use std::collections::HashMap;

use rullama_engine::{
    graph::{Element, Graph, Member, Origin, Type, Value},
    ops::{Activation, Branch, Epilogue, LoraPair, Mixture, Prologue, Slice, SlotFactors},
};

use crate::{
    adapted::{Adapted, FactorGroup, PendingLora},
    decoder::Inputs,
    folded_lora::FoldedLora,
    tensors::Catalog,
    training::Training,
};

/// A graph whose weights are named relative to a scope: inside `blk.3`, `attn_norm` means `blk.3.attn_norm.weight`.
pub(crate) struct Build<'a> {
    pub(crate) graph: Graph,
    pub(crate) catalog: &'a Catalog,
    scope: String,
    eps: f32,
    /// Whether every tapped value is computed; disables fusions that would skip one.
    traced: bool,
    /// The activation of feed-forward gates.
    pub(crate) activation: Activation,
    /// Set in training graphs.
    pub(crate) training: Option<Training>,
    /// Tensors that an adapter changes.
    pub(crate) adapted: Option<&'a Adapted>,
    /// The sequences of the pass, if its rows have different adapters.
    pub(crate) slot_sequences: Option<Value>,
    /// LoRA factors that the graph uses.
    pub(crate) factors: Vec<FactorGroup>,
    /// Folded LoRA down-projections that the graph uses.
    pub(crate) folded: Vec<FoldedLora>,
    /// LoRA terms of branches that are not added to the residual stream yet.
    pub(crate) pending_lora: HashMap<Value, PendingLora>,
}

/// The residual stream before the next matmuls.
#[derive(Clone, Copy)]
pub(crate) struct Stream {
    /// The residual stream, if it differs from the matmuls' input.
    h: Option<Value>,
    /// Computes the matmuls' input.
    prologue: Prologue,
}

impl Stream {
    /// A stream and the input of the next matmuls, both computed already.
    pub(crate) fn new(h: Value, x: Value) -> Self {
        Self { h: Some(h), prologue: Prologue::Rows(x) }
    }

    /// The residual stream: `updated` by a fused matmul, or else the one before it.
    pub(crate) fn or(&self, updated: Option<Value>) -> Value {
        updated.or(self.h).unwrap_or(match self.prologue {
            Prologue::Rows(h) | Prologue::Norm { h, .. } => h,
            Prologue::ResidualAdd { branch, .. } => branch.residual,
        })
    }
}

impl<'a> Build<'a> {
    pub(crate) fn new(catalog: &'a Catalog, eps: f32, traced: bool) -> Self {
        Self {
            graph: Graph::new(),
            catalog,
            scope: String::new(),
            eps,
            traced,
            activation: Activation::Gelu,
            adapted: None,
            slot_sequences: None,
            factors: Vec::new(),
            folded: Vec::new(),
            pending_lora: HashMap::new(),
            training: None,
        }
    }

    /// Sets the adapter.
    pub(crate) fn with_adapter(self, adapted: Option<&'a Adapted>) -> Self {
        Self { adapted, ..self }
    }

    /// Sets the scope of the names that follow, empty for the whole model, and returns the previous scope.
    pub(crate) fn enter(&mut self, scope: &str) -> String {
        let scope = if scope.is_empty() { String::new() } else { format!("{scope}.") };
        let before = std::mem::replace(&mut self.scope, scope);
        before.strip_suffix('.').map(str::to_owned).unwrap_or_default()
    }

    /// Whether the model has this tensor.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.catalog.get(&self.full(name)).is_some()
    }

    /// The first of these names that the model has, else the first.
    pub(crate) fn spelled(&self, names: &[&'static str]) -> &'static str {
        names.iter().copied().find(|name| self.has(&format!("{name}.weight"))).unwrap_or(names[0])
    }

    /// A tensor by its full name inside the scope: `ffn_gate_inp.scale`.
    ///
    /// # Panics
    /// If the model has no such tensor: the catalogue was checked against the configuration.
    pub(crate) fn tensor(&mut self, name: &str) -> Value {
        let full = self.full(name);
        let ty = self.catalog.get(&full).unwrap_or_else(|| panic!("no tensor {full}")).clone();
        self.graph.weight(full, ty)
    }

    /// A weight: `attn_q` means `attn_q.weight`.
    pub(crate) fn weight(&mut self, name: &str) -> Value {
        self.tensor(&format!("{name}.weight"))
    }

    /// An input that the host writes before each pass; calls with the same name return the same value.
    pub(crate) fn input(&mut self, name: &str, ty: Type) -> Value {
        let named = |origin: &Origin| matches!(origin, Origin::Input(known) if known == name);
        let known = self.graph.values().find(|(_, info)| named(&info.origin));
        match known.map(|(value, _)| value) {
            Some(value) => value,
            None => self.graph.input(name, ty),
        }
    }

    /// Matmul with a weight and its LoRA pair, times the weight's scale if the file has one.
    pub(crate) fn linear(&mut self, x: Value, name: &str) -> Value {
        if self.trains() {
            return self.trained_linear(x, name);
        }
        let factors = self.factors(&[name]);
        self.linear_with(x, name, factors)
    }

    /// The LM head: a matmul with the LoRA pair of `tensor` and an optional softcap.
    pub(crate) fn capped(&mut self, x: Value, name: &str, tensor: &str, cap: Option<f32>) -> Value {
        let width = self.graph.ty(x).shape.width();
        let rows = self.rows_of(name);
        let factors = self.factors_of(&[(tensor.into(), rows)], (None, width), false);
        let Some(cap) = cap else { return self.linear_with(x, name, factors) };
        if self.has(&format!("{name}.scale")) || !self.single_or_batch_invariant(x) {
            let y = self.linear_with(x, name, factors);
            return self.graph.softcap(y, cap);
        }
        let (prologue, weight) = (Prologue::Rows(x), self.weight(name));
        self.graph
            .fused_linear_lora(&prologue, weight, factors.as_ref(), &Epilogue::Softcap { cap })
            .1
    }

    /// Whether there is one row, or each row is computed as if it were the only one.
    fn single_or_batch_invariant(&self, rows: Value) -> bool {
        self.graph.ty(rows).shape.rows() == 1 || self.graph.is_batch_invariant()
    }

    /// A matmul without adapters.
    pub(crate) fn frozen_linear(&mut self, x: Value, name: &str) -> Value {
        self.linear_with(x, name, None)
    }

    pub(crate) fn linear_with(&mut self, x: Value, name: &str, factors: Option<LoraPair>) -> Value {
        let weight = self.weight(name);
        let scale = format!("{name}.scale");
        match (self.has(&scale), factors) {
            (false, None) => self.graph.linear(x, weight),
            (false, factors) => {
                let prologue = Prologue::Rows(x);
                self.graph
                    .fused_linear_lora(&prologue, weight, factors.as_ref(), &Epilogue::Plain)
                    .1
            }
            (true, factors) => {
                let y = self.graph.linear(x, weight);
                let scale = self.tensor(&scale);
                let y = self.graph.scale_by(y, scale);
                let Some(LoraPair { a, b, sequences, .. }) = factors else { return y };
                if let Some(sequences) = sequences {
                    return self.graph.slot_lora(y, x, &SlotFactors { a, b, sequences });
                }
                let z = self.graph.linear(x, a);
                let lora = self.graph.linear(z, b);
                self.graph.add(y, lora)
            }
        }
    }

    /// Embedding lookup: table rows by id, times a constant.
    pub(crate) fn lookup(&mut self, ids: Value, name: &str, scale: f32) -> Value {
        let table = self.weight(name);
        let h = self.graph.embed(ids, table, scale);
        let (rows, width) = (self.rows_of(name), self.graph.ty(h).shape.width());
        let tensor = self.full(&format!("{name}.weight"));
        let factors = self.factors_of(&[(tensor, rows)], (None, width), true);
        let Some(LoraPair { a, b, .. }) = factors else { return h };
        let z = self.graph.embed(ids, b, scale);
        let lora = self.graph.linear(z, a);
        self.graph.add(h, lora)
    }

    /// RMS norm with a weight.
    pub(crate) fn norm(&mut self, x: Value, name: &str) -> Value {
        let weight = self.weight(name);
        self.graph.rms_norm(x, Some(weight), self.eps)
    }

    /// The stream `h`, normed before the next matmuls.
    pub(crate) fn after_norm(&mut self, h: Value, name: &str) -> Stream {
        let prologue = Prologue::Norm { h, weight: self.weight(name), eps: self.eps };
        Stream { h: None, prologue }
    }

    /// The stream after a residual add, normed with the weight `next` before the next matmuls.
    pub(crate) fn residual_add(&mut self, add: &ResidualAdd<'_>, next: Option<Value>) -> Stream {
        let Some(name) = add.name else { return self.plain_residual_add(add, next) };
        let weight = self.weight(name);
        let PendingLora { lora_b, folded } =
            self.pending_lora.remove(&add.a).unwrap_or(PendingLora { lora_b: None, folded: 0 });
        let (residual, scale) = (add.h, add.scale);
        let branch =
            Branch { residual, branch: add.a, weight, post_norm: true, scale, lora_b, folded };
        if self.trains() {
            // Layers are recomputed one by one: a single value may cross from one to the next.
            let h = self.graph.add_norm(&branch, self.eps);
            let prologue = match next {
                Some(weight) => Prologue::Norm { h, weight, eps: self.eps },
                None => Prologue::Rows(h),
            };
            return Stream { h: None, prologue };
        }
        Stream { h: None, prologue: Prologue::ResidualAdd { branch, next, eps: self.eps } }
    }

    /// A residual add without a norm after the branch.
    fn plain_residual_add(&mut self, add: &ResidualAdd<'_>, next: Option<Value>) -> Stream {
        if let Some(next) = next.filter(|_| !self.trains()) {
            let branch = Branch {
                residual: add.h,
                branch: add.a,
                weight: next,
                post_norm: false,
                scale: add.scale,
                lora_b: None,
                folded: 0,
            };
            let (next, eps) = (Some(next), self.eps);
            return Stream { h: None, prologue: Prologue::ResidualAdd { branch, next, eps } };
        }
        let h = self.graph.add(add.h, add.a);
        let prologue = match next {
            Some(weight) => Prologue::Norm { h, weight, eps: self.eps },
            None => Prologue::Rows(h),
        };
        Stream { h: None, prologue }
    }

    /// The stream and the matmuls' input, as separate values.
    pub(crate) fn rows(&mut self, stream: Stream) -> (Value, Value) {
        match stream.prologue {
            Prologue::Rows(x) => (stream.or(None), x),
            Prologue::Norm { h, weight, eps } => (h, self.graph.rms_norm(h, Some(weight), eps)),
            Prologue::ResidualAdd { branch, next: Some(next), eps } => {
                self.graph.add_norm_norm(&branch, next, eps)
            }
            Prologue::ResidualAdd { branch, next: None, eps } => {
                let h = self.graph.add_norm(&branch, eps);
                (h, h)
            }
        }
    }

    /// The stream, and its matmuls with several weights: one fused matmul if the weights can be stacked.
    pub(crate) fn linears(&mut self, stream: Stream, names: &[&str]) -> (Value, Vec<Slice>) {
        if self.trains() {
            return self.trained_linears(stream, names);
        }
        let Some((weight, rows)) = self.stack(names) else {
            return self.separate_linears(stream, names);
        };
        let factors = self.factors(names);
        let prologue = &stream.prologue;
        let (h, y) =
            self.graph.fused_linear_lora(prologue, weight, factors.as_ref(), &Epilogue::Plain);
        let mut first = 0;
        let slice = |rows: &usize| {
            first += rows;
            Slice::new(y, first - rows, *rows)
        };
        (stream.or(h), rows.iter().map(slice).collect())
    }

    /// The stream, and `f(gate · x) ⊙ (up · x)`.
    pub(crate) fn gated(&mut self, stream: Stream, gate: &str, up: &str) -> (Value, Value) {
        if self.trains() {
            if let Some((h, both)) = self.trained_stack(stream, &[gate, up]) {
                return (h, self.graph.gated_halves(both, self.activation));
            }
            let (h, both) = self.trained_linears(stream, &[gate, up]);
            let [gate, up] = [both[0].value, both[1].value];
            return (h, self.graph.gated(gate, up, self.activation));
        }
        let Some((weight, _)) = self.stack(&[gate, up]) else {
            let (h, x) = self.rows(stream);
            let (gate, up) = (self.linear(x, gate), self.linear(x, up));
            return (h, self.graph.gated(gate, up, self.activation));
        };
        let factors = self.factors(&[gate, up]);
        let (prologue, epilogue) = (&stream.prologue, Epilogue::Gated(self.activation));
        let (h, y) = self.graph.fused_linear_lora(prologue, weight, factors.as_ref(), &epilogue);
        (stream.or(h), y)
    }

    /// `gelu(gate · x) ⊙ (up · x)` for each expert of a token; gate and up are one weight.
    pub(crate) fn gated_experts(&mut self, stream: Stream, name: &str, mixture: &Mixture) -> Value {
        if self.experts_unfused(name) {
            let (_, x) = self.rows(stream);
            let both = self.each_expert(x, name, &mixture.routes);
            return self.graph.geglu_halves(both);
        }
        let weight = self.weight(name);
        self.graph.fused_linear_experts(&stream.prologue, weight, mixture, &Epilogue::GEGLU).1
    }

    /// The stream, and `gelu(gate · x) ⊙ long[:, slice]`.
    pub(crate) fn gated_slice(
        &mut self,
        stream: Stream,
        gate: &str,
        long: Value,
        slice: usize,
    ) -> (Value, Value) {
        let Some((weight, _)) = self.stack(&[gate]).filter(|_| !self.trains()) else {
            let (h, x) = self.rows(stream);
            let gate = self.linear(x, gate);
            return (h, self.graph.gelu_mul_slice(gate, long, slice));
        };
        let factors = self.factors(&[gate]);
        let (prologue, epilogue) = (&stream.prologue, Epilogue::GeluMul { long, slice });
        let (h, y) = self.graph.fused_linear_lora(prologue, weight, factors.as_ref(), &epilogue);
        (stream.or(h), y)
    }

    /// Matmuls with weights that cannot all be stacked: one per group of stackable neighbours.
    fn separate_linears(&mut self, stream: Stream, names: &[&str]) -> (Value, Vec<Slice>) {
        if let Some(separate) = self.separate_after_norm(stream, names) {
            return separate;
        }
        let (h, x) = self.rows(stream);
        let mut slices = Vec::new();
        for group in self.stackable_groups(names) {
            match group {
                [one] => slices.push(self.linear(x, one).into()),
                several => slices.extend(self.linears(Stream::new(h, x), several).1),
            }
        }
        (h, slices)
    }

    /// Weights in groups of neighbours that can be stacked, each as large as possible.
    pub(crate) fn stackable_groups<'n>(&mut self, names: &'n [&'n str]) -> Vec<&'n [&'n str]> {
        if self.stack(names).is_some() {
            return vec![names];
        }
        let mut groups = Vec::new();
        let mut rest = names;
        while !rest.is_empty() {
            let most = (2..rest.len()).rev().find(|count| self.stack(&rest[..*count]).is_some());
            let (group, others) = rest.split_at(most.unwrap_or(1));
            groups.push(group);
            rest = others;
        }
        groups
    }

    /// Matmuls of one row where only the last weight cannot be stacked: its dispatch computes the residual sum and norm again, which
    /// costs less than a separate norm dispatch.
    fn separate_after_norm(
        &mut self,
        stream: Stream,
        names: &[&str],
    ) -> Option<(Value, Vec<Slice>)> {
        let (h, weight, eps, folded) = match stream.prologue {
            Prologue::ResidualAdd { branch, next: Some(weight), eps } => {
                (branch.residual, weight, eps, branch.folded)
            }
            Prologue::Norm { h, weight, eps } => (h, weight, eps, 0),
            Prologue::ResidualAdd { .. } | Prologue::Rows(_) => return None,
        };
        let single = self.single_or_batch_invariant(h);
        let (last, others) = names.split_last().filter(|_| single)?;
        let (value, _) = self.stack(&[last])?;
        self.stack(others)?;
        let (h, mut slices) = self.linears(stream, others);
        let (factors, first_row) = (self.factors(&[last]), self.rank_of(others));
        let (prologue, factors) = match factors {
            // Folded factors replace the norms of the residual sum, so the prologue must be the sum.
            Some(own) if folded > 0 => {
                (stream.prologue, Some(LoraPair { folded_row: first_row, ..own }))
            }
            // Recomputing the residual sum removes the dependency on the other matmul: both dispatches overlap. Rows without an adapter are
            // computed in the same way beside rows that have one.
            None | Some(LoraPair { sequences: Some(_), .. }) => (stream.prologue, factors),
            own => (Prologue::Norm { h, weight, eps }, own),
        };
        let y =
            self.graph.fused_linear_lora(&prologue, value, factors.as_ref(), &Epilogue::Plain).1;
        slices.push(y.into());
        Some((h, slices))
    }

    /// Several weights stacked by rows, with the rows of each; `None` if their formats differ or they have scales.
    pub(crate) fn stack(&mut self, names: &[&str]) -> Option<(Value, Vec<usize>)> {
        let types: Vec<&Type> = names
            .iter()
            .map(|name| self.catalog.get(&self.full(&format!("{name}.weight"))))
            .collect::<Option<_>>()?;
        let same_format = |ty: &&Type| {
            ty.element == types[0].element && ty.shape.width() == types[0].shape.width()
        };
        let scaled = names.iter().any(|name| self.has(&format!("{name}.scale")));
        if scaled || !types.iter().all(same_format) {
            return None;
        }
        if let [name] = names {
            let rows = vec![types[0].shape.rows()];
            return Some((self.weight(name), rows));
        }
        let rows: Vec<usize> = types.iter().map(|ty| ty.shape.rows()).collect();
        let members: Vec<Member> = names
            .iter()
            .zip(&rows)
            .map(|(name, rows)| Member::new(self.full(&format!("{name}.weight")), *rows))
            .collect();
        if !members.iter().all(Member::stackable) {
            return None;
        }
        let Element::Weight(dtype) = types[0].element else { return None };
        let width = types[0].shape.width();
        Some((self.graph.weight_rows(&members, dtype, width), rows))
    }

    pub(crate) fn tap(&mut self, value: Value, name: impl Into<String>) {
        self.graph.tap(value, name);
    }

    /// RoPE table without rotation for heads of this size; traces write it.
    pub(crate) fn identity_rope(&mut self, tokens: usize, head: usize) -> Value {
        let name = format!("{}{head}", Inputs::IDENTITY_ROPE);
        // Each segment of a split graph has its own input.
        let known =
            self.graph.values().find(|(_, info)| info.origin == Origin::Input(name.clone()));
        match known.map(|(value, _)| value) {
            Some(value) => value,
            None => self.graph.input(name, Type::f32([tokens, head / 2, 2])),
        }
    }

    /// Whether every tapped value is computed.
    pub(crate) fn traced(&self) -> bool {
        self.traced
    }

    pub(crate) fn eps(&self) -> f32 {
        self.eps
    }

    /// A name with its scope.
    pub(crate) fn full(&self, name: &str) -> String {
        format!("{}{name}", self.scope)
    }
}

/// A branch that is added to the residual stream.
pub(crate) struct ResidualAdd<'a> {
    /// The residual stream.
    pub(crate) h: Value,
    /// Output of the branch.
    pub(crate) a: Value,
    /// The norm after the branch, if it has one.
    pub(crate) name: Option<&'a str>,
    /// The layer's output scale, multiplied with the sum.
    pub(crate) scale: Option<Value>,
}
