//! Which tensors of a model have LoRA pairs, and the weights through which graphs read them.

use std::collections::BTreeMap;

use rullama_engine::{
    graph::{Type, Value},
    ops::{LoraPair, Routes},
};
use rullama_gguf::DType;

use crate::{build::Build, folded_lora::NextMatmul};

/// The tensor whose LoRA pair changes logits, also where the model has one table for embeddings and LM head.
pub(crate) const HEAD: &str = "output.weight";
/// Largest `B`, in bytes, that is applied in the residual sum: every workgroup of the dispatch that computes the sum reads all of `B`.
/// The larger limit is for dispatches of few workgroups: matmuls with a LoRA pair or a small output.
const MAX_B_FEW_WORKGROUPS: u64 = 256 << 10;
const MAX_B_MANY_WORKGROUPS: u64 = 64 << 10;
/// Ranks are padded with zeros to a multiple of this.
const RANK_STEP: usize = 4;

/// Tensors that an adapter changes, with their ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adapted {
    /// Ranks by tensor. The pair of the token table is named `token_embd.weight` for the lookup and `output.weight` for the LM head,
    /// whatever the file calls that table.
    pub ranks: BTreeMap<String, usize>,
    /// How `A` and `B` are stored: F16 or F32.
    pub dtype: DType,
    /// Whether down-projections are folded into separate weights where that saves a dispatch.
    pub fold: bool,
    /// Adapter slots, if rows of a pass have different adapters: each rank is then the largest of all slots, and weights hold the factors of slot
    /// after slot. Only decoders over KV pools have slots, without experts and token table.
    pub slots: Option<usize>,
}

/// Names and rows of tensors, their number of experts if they have experts, and their columns.
pub(crate) type Tensors = (Vec<(String, usize)>, (Option<usize>, usize));

/// LoRA columns stored after the output columns of a branch that is not yet added to the residual stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PendingLora {
    /// `B` of the branch's own pair, transposed.
    pub(crate) lora_b: Option<Value>,
    /// Columns that hold the folded down-projections of the next matmul.
    pub(crate) folded: usize,
}

/// The LoRA pair of one weight of a graph, which may be several tensors stacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactorGroup {
    /// Name of the weight `A` `[rank, columns]`: the stacked `A` of all tensors; with slots, `[slots · rank, columns]`.
    pub a: String,
    /// Name of the weight `B` `[rows, rank]`, block-diagonal: a tensor's rows are zero outside its own columns; with slots,
    /// `[slots · rows, rank]`.
    pub b: String,
    /// Name of `B` transposed, `[rank, rows]`, if the graph also reads that.
    pub b_transposed: Option<String>,
    /// The tensors, with their rows and ranks; a rank may be 0.
    pub tensors: Vec<(String, usize, usize)>,
    /// Number of experts, the first dimension of the tensors, `A` and `B`; 1 for dense weights.
    pub experts: usize,
    /// Sum of all ranks, padded.
    pub rank: usize,
    /// Columns of `A`: the width of x.
    pub columns: usize,
    /// Whether `A` is stored as `[columns, rank]`, for an embedding lookup: it reads rows of `B` first.
    pub lookup: bool,
}

impl Adapted {
    /// The LoRA pair of tensors `[rows, columns]`, or `[experts, rows, columns]`, that a graph reads as one weight; `None` if the adapter
    /// changes none of them.
    pub(crate) fn group(
        &self,
        tensors: &[(String, usize)],
        (experts, columns): (Option<usize>, usize),
        lookup: bool,
    ) -> Option<FactorGroup> {
        // The factors of slots begin at whole vec4s, wherever the ranks of other tensors end: sums are then the same for all ranks.
        let step = if self.slots.is_some() { RANK_STEP } else { 1 };
        let rank =
            |tensor: &str| self.ranks.get(tensor).map_or(0, |rank| rank.next_multiple_of(step));
        let tensors: Vec<_> =
            tensors.iter().map(|(name, rows)| (name.clone(), *rows, rank(name))).collect();
        let all: usize = tensors.iter().map(|(.., rank)| rank).sum();
        let names: Vec<&str> = tensors.iter().map(|(name, ..)| name.as_str()).collect();
        let name = names.join("+");
        let prefix = if self.slots.is_some() { "slots" } else { "factor" };
        (all > 0).then(|| FactorGroup {
            a: format!("{prefix}_a.{name}"),
            b: format!("{prefix}_b.{name}"),
            b_transposed: None,
            rank: all.next_multiple_of(RANK_STEP),
            columns,
            lookup,
            tensors,
            experts: experts.unwrap_or(1),
        })
    }
}

impl Build<'_> {
    /// The LoRA pair of stacked weights.
    pub(crate) fn factors(&mut self, names: &[&str]) -> Option<LoraPair> {
        self.adapted?;
        let (tensors, size) = self.tensors(names)?;
        self.factors_of(&tensors, size, false)
    }

    /// The tensors with these names inside the scope.
    pub(crate) fn tensors(&self, names: &[&str]) -> Option<Tensors> {
        let tensors: Vec<(String, usize)> = names
            .iter()
            .map(|name| (self.full(&format!("{name}.weight")), self.rows_of(name)))
            .collect();
        let (first, _) = tensors.first()?;
        let ty = self.catalog.get(first)?;
        let size = (experts_of(ty), ty.shape.width());
        Some((tensors, size))
    }

    /// The LoRA pair of tensors, by full name, with this number of experts (if any) and columns.
    pub(crate) fn factors_of(
        &mut self,
        tensors: &[(String, usize)],
        (experts, columns): (Option<usize>, usize),
        lookup: bool,
    ) -> Option<LoraPair> {
        let adapted = self.adapted?;
        let group = adapted.group(tensors, (experts, columns), lookup)?;
        let rows: usize = tensors.iter().map(|(_, rows)| rows).sum();
        let weight = |sizes: [usize; 2]| {
            let dims: Vec<usize> = experts.into_iter().chain(sizes).collect();
            Type::weight(adapted.dtype, dims)
        };
        let slots = adapted.slots.unwrap_or(1);
        let a = if lookup { [columns, group.rank] } else { [slots * group.rank, columns] };
        let a = self.graph.weight(group.a.clone(), weight(a));
        let b = self.graph.weight(group.b.clone(), weight([slots * rows, group.rank]));
        self.factors.push(group);
        let sequences = self.slot_sequences.filter(|_| adapted.slots.is_some());
        Some(LoraPair { a, b, folded_row: 0, sequences })
    }

    /// The matmul that ends a branch of the residual stream `h`; only [`Self::residual_add`] may read its output. For one token its
    /// dispatch
    /// also computes `A x` of its LoRA pair and the folded down-projections of the next matmuls; the residual sum applies `B`. An
    /// adapter then adds no dispatches.
    pub(crate) fn branch(
        &mut self,
        (x, h): (Value, Value),
        name: &str,
        next: &NextMatmul,
    ) -> Value {
        let single_row = self.graph.ty(x).shape.rows() == 1 && !self.graph.is_batch_invariant();
        let unfused =
            !single_row || self.trains() || self.traced() || self.has(&format!("{name}.scale"));
        // Without a post-norm, the residual sum is a plain add, which takes no LoRA factors.
        if unfused || self.adapted.is_none() || next.post_norm.is_none() {
            return self.linear(x, name);
        }
        let (factors, weight) = (self.factors(&[name]), self.weight(name));
        let bytes = |value| self.graph.ty(value).bytes();
        let fits = |most| factors.is_none_or(|own| bytes(own.b) <= most);
        let (fits_few, fits_many) = (fits(MAX_B_FEW_WORKGROUPS), fits(MAX_B_MANY_WORKGROUPS));
        let folded =
            fits_many.then(|| self.fold_lora((x, h), (name, factors.as_ref()), next)).flatten();
        let stores_down = if self.has_few_workgroups(next) { fits_few } else { fits_many };
        let y = match (&folded, factors) {
            (Some(folded), _) => self.graph.linear_with_folded_down(x, weight, folded),
            (None, Some(own)) if stores_down => self.graph.linear_with_down(x, weight, own.a),
            (None, factors) => return self.linear_with(x, name, factors),
        };
        let lora_b = factors.map(|_| self.b_transposed(name));
        let folded = folded.map_or(0, |folded| 2 * self.graph.ty(folded.p).shape.rows());
        self.pending_lora.insert(y, PendingLora { lora_b, folded });
        y
    }

    /// Whether the dispatch that computes the residual sum for the next matmuls has few workgroups.
    fn has_few_workgroups(&mut self, next: &NextMatmul) -> bool {
        let here = self.enter(&next.scope);
        let few = next.names == ["inp_gate"]
            || next.names.first().is_some_and(|name| self.is_adapted(name));
        self.enter(&here);
        few
    }

    /// `B` of this matmul's pair, the last that [`Self::factors`] returned, transposed.
    fn b_transposed(&mut self, name: &str) -> Value {
        let (rows, adapted) =
            (self.rows_of(name), self.adapted.expect("the matmul has a LoRA pair"));
        let group = self.factors.last_mut().expect("the pair was requested");
        let transposed = format!("factor_t.{}", group.b);
        group.b_transposed = Some(transposed.clone());
        self.graph.weight(transposed, Type::weight(adapted.dtype, [group.rank, rows]))
    }

    /// Rows of a weight; for expert weights, rows per expert.
    pub(crate) fn rows_of(&self, name: &str) -> usize {
        let ty = self.catalog.get(&self.full(&format!("{name}.weight")));
        ty.map_or(0, |ty| ty.shape.rows() / experts_of(ty).unwrap_or(1).max(1))
    }

    /// Whether expert matmuls are not fused with the operations around them: the fused kernel has no cheap gradient, and LoRA terms are
    /// added in between.
    pub(crate) fn experts_unfused(&self, name: &str) -> bool {
        self.trains() || self.is_adapted(name)
    }

    /// Whether an adapter changes this weight.
    fn is_adapted(&self, name: &str) -> bool {
        let full = self.full(&format!("{name}.weight"));
        self.adapted.is_some_and(|adapted| adapted.ranks.contains_key(&full))
    }

    /// Matmuls of tokens with the weights of their experts, `[t, k, r]`, including their LoRA pairs.
    pub(crate) fn each_expert(&mut self, x: Value, name: &str, routes: &Routes) -> Value {
        let weight = self.weight(name);
        let y = self.graph.linear_experts(x, routes, weight);
        let Some(LoraPair { a, b, .. }) = self.factors(&[name]) else { return y };
        let z = self.graph.linear_experts(x, routes, a);
        let lora = self.graph.linear_experts(z, routes, b);
        self.graph.add(y, lora)
    }
}

/// The number of experts of a weight, if it has any.
fn experts_of(ty: &Type) -> Option<usize> {
    match *ty.shape.dims() {
        [experts, _, _] => Some(experts),
        _ => None,
    }
}
