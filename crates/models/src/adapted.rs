//! Which tensors have factors of an adapter beside them, and how graphs want to have those.

use std::collections::BTreeMap;

use rullama_engine::{
    graph::{Type, Value},
    ops::{LORA_RECOMPUTE_BYTES, LoraPair, Routes},
};
use rullama_gguf::DType;

use crate::{build::Build, folded_lora::NextMatmul};

/// The tensor whose factors change logits; also where the model has one table for both.
pub(crate) const HEAD: &str = "output.weight";
/// Bytes of a second factor that is added where a branch joins the stream, at most: every workgroup that makes the sum reads it. Those
/// are few before a product that has factors of its own or few rows.
const READ_BY_FEW: u64 = 256 << 10;
const READ_BY_MANY: u64 = 64 << 10;
/// Inner sizes are multiples of this, with zeros after what there is.
const RANK_STEP: usize = 4;

/// Tensors that an adapter changes, with the inner size of their factors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adapted {
    /// Inner sizes by tensor. Factors of the table of tokens go by `token_embd.weight` for the lookup and by `output.weight` for the
    /// head, whatever the file calls it.
    pub ranks: BTreeMap<String, usize>,
    /// How factors are stored: F16 or F32.
    pub dtype: DType,
    /// Whether down-projections are folded where that saves a dispatch: they get weights of their own.
    pub fold: bool,
}

/// Tensors with their rows; how many experts they are for, where they are for any, and their columns.
pub(crate) type Tensors = (Vec<(String, usize)>, (Option<usize>, usize));

/// What lies after a branch that has not joined the stream yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PendingLora {
    /// The second factor of its own pair, turned.
    pub(crate) low: Option<Value>,
    /// How many numbers are for the product that follows.
    pub(crate) ahead: usize,
}

/// The factors that stand beside one weight of a graph, which may be several tensors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactorGroup {
    /// Name of the weight `A` `[rank, columns]`: those of the tensors below each other.
    pub a: String,
    /// Name of the weight `B` `[rows, rank]`: a tensor's rows have numbers only in its own columns.
    pub b: String,
    /// Name of the same turned, `[rank, rows]`, where the graph uses that too.
    pub turned: Option<String>,
    /// The tensors, with their rows and the inner sizes of their factors, which may be none.
    pub tensors: Vec<(String, usize, usize)>,
    /// How many matrices a tensor is; those of experts have them as a first dimension, and so have both weights.
    pub experts: usize,
    /// Inner size of all, and what was added to it.
    pub rank: usize,
    /// What enters.
    pub columns: usize,
    /// `A` is stored as `[columns, rank]`: rows of `B` are looked up and come first.
    pub lookup: bool,
}

impl Adapted {
    /// The factors beside some tensors `[rows, columns]`, or `[experts, rows, columns]`, that enter a graph as one weight, if any has
    /// some.
    pub(crate) fn group(
        &self,
        tensors: &[(String, usize)],
        (experts, columns): (Option<usize>, usize),
        lookup: bool,
    ) -> Option<FactorGroup> {
        let rank = |tensor: &str| self.ranks.get(tensor).copied().unwrap_or(0);
        let tensors: Vec<_> =
            tensors.iter().map(|(name, rows)| (name.clone(), *rows, rank(name))).collect();
        let all: usize = tensors.iter().map(|(.., rank)| rank).sum();
        let names: Vec<&str> = tensors.iter().map(|(name, ..)| name.as_str()).collect();
        let name = names.join("+");
        (all > 0).then(|| FactorGroup {
            a: format!("factor_a.{name}"),
            b: format!("factor_b.{name}"),
            turned: None,
            rank: all.next_multiple_of(RANK_STEP),
            columns,
            lookup,
            tensors,
            experts: experts.unwrap_or(1),
        })
    }
}

impl Build<'_> {
    /// The factors beside some weights that are stored as one, or one of them.
    pub(crate) fn factors(&mut self, names: &[&str]) -> Option<LoraPair> {
        self.adapted?;
        let (tensors, size) = self.tensors(names)?;
        self.factors_of(&tensors, size, false)
    }

    /// Tensors with their rows; how many experts they are for, and their columns.
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

    /// The same for tensors of so many experts, if any, and columns, whatever they are called.
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
        let a = if lookup { [columns, group.rank] } else { [group.rank, columns] };
        let a = self.graph.weight(group.a.clone(), weight(a));
        let b = self.graph.weight(group.b.clone(), weight([rows, group.rank]));
        self.factors.push(group);
        Some(LoraPair { a, b, folded_row: 0 })
    }

    /// The product that ends a branch of the stream `h`, which [`Self::joined`] takes and nothing else. For one token the first factor of
    /// an adapter goes beside the weight, and the second is added where the branch joins the stream, before the products that
    /// follow: that takes no dispatches of its own. The first factor of those is met here too.
    pub(crate) fn branch(
        &mut self,
        (x, h): (Value, Value),
        name: &str,
        next: &NextMatmul,
    ) -> Value {
        let one = self.graph.ty(x).shape.rows() == 1 && !self.graph.is_batch_invariant();
        let whole = !one || self.trains() || self.traced() || self.has(&format!("{name}.scale"));
        if whole || self.adapted.is_none() {
            return self.linear(x, name);
        }
        let (factors, weight) = (self.factors(&[name]), self.weight(name));
        let bytes = |value| self.graph.ty(value).bytes();
        let most = |most| factors.is_none_or(|own| bytes(own.b) <= most);
        let large = factors.is_none_or(|own| bytes(own.a) > LORA_RECOMPUTE_BYTES as u64);
        let (by_few, by_many) = (most(READ_BY_FEW), most(READ_BY_MANY));
        let ahead = (large && by_many)
            .then(|| self.fold_lora((x, h), (name, factors.as_ref()), next))
            .flatten();
        let beside = large && if self.is_few(next) { by_few } else { by_many };
        let y = match (&ahead, factors) {
            (Some(ahead), _) => self.graph.linear_with_folded_down(x, weight, ahead),
            (None, Some(own)) if beside => self.graph.linear_with_down(x, weight, own.a),
            (None, factors) => return self.linear_with(x, name, factors),
        };
        let low = factors.map(|_| self.turned(name));
        let ahead = ahead.map_or(0, |ahead| 2 * self.graph.ty(ahead.p).shape.rows());
        self.pending_lora.insert(y, PendingLora { low, ahead });
        y
    }

    /// Whether few workgroups compute the input of the next matmuls.
    fn is_few(&mut self, next: &NextMatmul) -> bool {
        let here = self.enter(&next.scope);
        let few = next.names == ["inp_gate"]
            || next.names.first().is_some_and(|name| self.is_adapted(name));
        self.enter(&here);
        few
    }

    /// The second factor of this product, which was requested last, turned.
    fn turned(&mut self, name: &str) -> Value {
        let (rows, adapted) = (self.rows_of(name), self.adapted.expect("it has factors"));
        let group = self.factors.last_mut().expect("factors were asked for");
        let turned = format!("factor_t.{}", group.b);
        group.turned = Some(turned.clone());
        self.graph.weight(turned, Type::weight(adapted.dtype, [group.rank, rows]))
    }

    /// Rows of a weight; of experts, those of one.
    pub(crate) fn rows_of(&self, name: &str) -> usize {
        let ty = self.catalog.get(&self.full(&format!("{name}.weight")));
        ty.map_or(0, |ty| ty.shape.rows() / experts_of(ty).unwrap_or(1).max(1))
    }

    /// Whether products of experts are made apart from what is around them: the gradient of the fused form would compute it again, and
    /// factors are added in between.
    pub(crate) fn experts_apart(&self, name: &str) -> bool {
        self.trains() || self.is_adapted(name)
    }

    /// Whether an adapter changes this weight.
    fn is_adapted(&self, name: &str) -> bool {
        let full = self.full(&format!("{name}.weight"));
        self.adapted.is_some_and(|adapted| adapted.ranks.contains_key(&full))
    }

    /// Products of tokens with the weights of their experts, `[t, k, r]`. Factors are weights of experts too, only thin.
    pub(crate) fn each_expert(&mut self, x: Value, name: &str, routes: &Routes) -> Value {
        let weight = self.weight(name);
        let y = self.graph.linear_experts(x, routes, weight);
        let Some(LoraPair { a, b, .. }) = self.factors(&[name]) else { return y };
        let z = self.graph.linear_experts(x, routes, a);
        let more = self.graph.linear_experts(z, routes, b);
        self.graph.add(y, more)
    }
}

/// How many experts a weight is for, where it is for any.
fn experts_of(ty: &Type) -> Option<usize> {
    match *ty.shape.dims() {
        [experts, _, _] => Some(experts),
        _ => None,
    }
}
