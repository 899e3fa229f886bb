//! Which tensors have factors of an adapter beside them, and how lists want to have those.

use std::collections::BTreeMap;

use rullama_gguf::DType;

/// The tensor whose factors change logits; also where the model has one table for both.
pub(crate) const HEAD: &str = "output.weight";
/// Inner sizes are multiples of this, with zeros behind what there is.
const RANK_STEP: usize = 4;

/// Tensors that an adapter changes, with the inner size of their factors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adapted {
    /// Inner sizes by tensor. Factors of the table of tokens go by `token_embd.weight` for the lookup and by `output.weight` for the
    /// head, whatever the file calls it.
    pub ranks: BTreeMap<String, usize>,
    /// How factors are stored: F16 or F32.
    pub dtype: DType,
}

/// The factors that stand beside one weight of a list, which may be several tensors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactorGroup {
    /// Name of the weight `A` `[rank, columns]`: those of the tensors below each other.
    pub a: String,
    /// Name of the weight `B` `[rows, rank]`: a tensor's rows have numbers only in its own columns.
    pub b: String,
    /// The tensors, with their rows and the inner sizes of their factors, which may be none.
    pub tensors: Vec<(String, usize, usize)>,
    /// Inner size of all, and what was added to it.
    pub rank: usize,
    /// What enters.
    pub columns: usize,
    /// `A` is stored as `[columns, rank]`: rows of `B` are looked up and come first.
    pub lookup: bool,
}

impl Adapted {
    /// The factors beside some tensors that enter a list as one weight, if any has some.
    pub(crate) fn group(
        &self,
        tensors: &[(String, usize)],
        columns: usize,
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
            rank: all.next_multiple_of(RANK_STEP),
            columns,
            lookup,
            tensors,
        })
    }
}
