//! KV pools: the caches of many sequences in pages of one state for each layer.

use rullama_engine::{
    graph::{Type, Value},
    ops::{Paging, Sequences},
};

use super::{Inputs, Kind, Pass, PassOutput};
use crate::build::Build;

/// The sizes of KV pools, in which many sequences keep their caches in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolShape {
    /// Tokens of a page.
    pub page: usize,
    /// The pool of global layers.
    pub global: PoolPages,
    /// The pool of sliding layers.
    pub sliding: PoolPages,
    /// Whether passes of more than 8 rows use GEMM tiles, which are faster but round differently: those passes are not batch-invariant.
    pub gemm: bool,
    /// Sequences whose latest tokens are kept on the device, in the state [`Inputs::LATEST`].
    pub slots: usize,
}

/// The pages of a KV pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolPages {
    /// Pages of all sequences.
    pub pages: usize,
    /// Entries of a sequence's block table: a page for every position, or a ring of pages for the window.
    pub entries: usize,
}

impl PoolShape {
    /// The pool of layers of this kind.
    pub fn of(&self, kind: Kind) -> PoolPages {
        match kind {
            Kind::Global => self.global,
            Kind::Sliding => self.sliding,
        }
    }
}

/// The sequences of a pass over KV pools, with the block tables of layers of this kind.
pub(super) fn sequences(b: &mut Build<'_>, pass: &Pass, kind: Kind) -> Option<Sequences> {
    let pool = pass.pool?;
    let one_sequence = pass.output == PassOutput::Caches;
    let name = match kind {
        Kind::Sliding => Inputs::SEQUENCES_SLIDING,
        Kind::Global => Inputs::SEQUENCES_GLOBAL,
    };
    let rows = if one_sequence { 1 } else { pass.tokens };
    let value = b.input(name, Type::u32([rows, Sequences::HEADER + pool.of(kind).entries]));
    let paging = Paging { page: pool.page, context: pass.context, one_sequence };
    Some(Sequences { value, paging })
}

/// The ids of a pass over KV pools that chooses tokens: the host writes them, or names the slots of those that it has not seen yet.
pub(super) fn gathered_ids(b: &mut Build<'_>, pass: &Pass, ids: Value) -> Value {
    match latest(b, pass) {
        Some(latest) => b.graph.gather_tokens(ids, latest),
        None => ids,
    }
}

/// Keeps the tokens that a pass over KV pools has chosen where the next pass finds them.
pub(super) fn scatter(b: &mut Build<'_>, pass: &Pass, tokens: Value) {
    if let (Some(latest), Some(rows)) = (latest(b, pass), sequences(b, pass, Kind::Global)) {
        b.graph.scatter_tokens(latest, tokens, rows);
    }
}

/// The latest tokens of sequences, where a pass over KV pools chooses tokens on the device.
fn latest(b: &mut Build<'_>, pass: &Pass) -> Option<Value> {
    let chooses = matches!(pass.output, PassOutput::GreedyEach | PassOutput::DrawnEach);
    let slots = pass.pool.filter(|_| chooses)?.slots;
    Some(b.graph.state(Inputs::LATEST, Type::u32([slots])))
}
