//! KV pools: the caches of many sequences in pages of one state for each layer.

use rullama_engine::{
    graph::Type,
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
