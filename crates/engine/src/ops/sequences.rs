//! Sequences with paged KV caches in a KV pool: which rows of a pass belong to which sequence, and where their keys and values are stored.
//!
//! The KV caches of all sequences are one state `[pages · page, k, e]`. Each sequence has a block table: entry `position / page` is the page that
//! holds a position, or entry `position / page % entries` if the table is shorter than the sequence (a ring buffer of pages, for sliding windows).
//! The input `u32[sequences, 4 + entries]` holds for each sequence its position, its seed, the slot of its latest token, its adapter (0 for none,
//! otherwise the adapter's slot plus one), and its block table.

use crate::{
    cpu::CpuCall,
    gpu::{BufferRef, Dispatch},
    graph::{Element, Graph, Step, Type, Value},
};

/// How the rows of a pass belong to sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paging {
    /// Tokens per page.
    pub page: usize,
    /// The maximum length of a sequence: rows are computed as over a KV cache with this number of slots.
    pub context: usize,
    /// Whether all rows belong to one sequence, at consecutive positions from the step's position (prefill). Otherwise each row belongs to another
    /// sequence, at the position in the input.
    pub one_sequence: bool,
}

/// The sequences of a pass: the input and its interpretation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sequences {
    /// The input `u32[sequences, 4 + entries]`.
    pub value: Value,
    /// How rows belong to them.
    pub paging: Paging,
}

impl Sequences {
    /// Words of a sequence before its block table.
    pub const HEADER: usize = 4;

    /// The index of the word with the slot of the sequence's latest token (see [`super::ScatterTokens`]).
    pub const SLOT: usize = 2;

    /// The index of the word with the sequence's adapter: 0 for none, otherwise its slot plus one (see [`super::SlotLora`]).
    pub const ADAPTER: usize = 3;

    /// The words of one sequence in the input; unknown entries are 0.
    ///
    /// # Panics
    /// If `table` has more than `entries` entries.
    pub fn words(position: u32, seed: u32, table: &[u32], entries: usize) -> Vec<u32> {
        assert!(table.len() <= entries, "a block table of {} in {entries} entries", table.len());
        let mut words = vec![position, seed, 0, 0];
        words.extend(table);
        words.resize(Self::HEADER + entries, 0);
        words
    }
}

impl Step {
    /// The step of a pass with rows of different sequences. Its position is beyond every context: ops that do not know the rows' own positions
    /// treat all KV splits as live.
    pub fn of_rows(count: u32) -> Self {
        Self { position: 1 << 30, count, ..Self::default() }
    }
}

impl Graph {
    /// The inputs of an op, followed by its sequences.
    pub(super) fn with_sequences(
        mut inputs: Vec<Value>,
        sequences: Option<Sequences>,
    ) -> Vec<Value> {
        inputs.extend(sequences.map(|sequences| sequences.value));
        inputs
    }
}

impl Paging {
    /// Checks the last input of an op with `t` rows over this KV pool.
    ///
    /// # Panics
    /// If it does not fit.
    pub(super) fn check(&self, sequences: &Type, t: usize, pool: &Type) {
        self.check_rows(sequences, t);
        let whole = pool.shape.dims()[0].is_multiple_of(self.page);
        assert!(whole, "a KV pool {pool} of pages of {}", self.page);
    }

    /// [`Self::check`] for an op without a KV pool.
    pub(super) fn check_rows(&self, sequences: &Type, t: usize) {
        let rows = if self.one_sequence { 1 } else { t };
        let fits = sequences.element == Element::U32
            && sequences.shape.rows() == rows
            && sequences.shape.width() > Sequences::HEADER;
        assert!(fits, "{sequences} for {rows} sequences");
    }
}

/// Positions and slots of the rows of a pass, for CPU references.
#[derive(Debug, Clone, Copy)]
pub(super) enum RowPlaces<'a> {
    /// One sequence with its own KV cache.
    Single { position: usize, slots: usize },
    /// Sequences with pages in a pool; `words` is the input's data, with a fixed number of words per sequence.
    Paged { position: usize, paging: Paging, words: &'a [u32], each: usize },
}

impl<'a> RowPlaces<'a> {
    /// For an op whose last input holds the sequences, if it has any.
    pub(super) fn new(
        step: &Step,
        slots: usize,
        sequences: Option<(Paging, &'a [u32], &Type)>,
    ) -> Self {
        let position = step.position as usize;
        match sequences {
            None => Self::Single { position, slots },
            Some((paging, words, ty)) => {
                Self::Paged { position, paging, words, each: ty.shape.width() }
            }
        }
    }

    /// The position of a row.
    pub(super) fn position(&self, row: usize) -> usize {
        match *self {
            Self::Paged { paging: Paging { one_sequence: false, .. }, words, each, .. } => {
                words[row * each] as usize
            }
            Self::Single { position, .. } | Self::Paged { position, .. } => position + row,
        }
    }

    /// The slot that holds a position of the row's sequence.
    pub(super) fn slot(&self, row: usize, key: usize) -> usize {
        match *self {
            Self::Single { slots, .. } => key % slots,
            Self::Paged { paging, words, each, .. } => {
                let sequence = if paging.one_sequence { 0 } else { row };
                let table = &words[sequence * each..][Sequences::HEADER..each];
                table[key / paging.page % table.len()] as usize * paging.page + key % paging.page
            }
        }
    }
}

impl CpuCall<'_> {
    /// The data of the last input, if an op has sequences.
    pub(super) fn sequences(&self, paging: Option<Paging>) -> Option<(Paging, Vec<u32>, &Type)> {
        let last = self.inputs() - 1;
        paging.map(|paging| (paging, self.u32(last).to_vec(), self.input(last)))
    }
}

impl Dispatch {
    /// Binds the sequences of a pass, input `input` of the op.
    pub(super) fn sequences(self, paging: Paging, input: usize, ty: &Type) -> Self {
        let word = |n: usize| u32::try_from(n).expect("a block table is short");
        self.part(shared_part!("sequence", "batch"))
            .constant("SEQUENCE_WORDS", word(ty.shape.width()))
            .constant("PAGE", word(paging.page))
            .constant("ONE_SEQUENCE", u32::from(paging.one_sequence))
            .read_as("sequences", BufferRef::Input(input))
    }
}

#[cfg(test)]
mod tests {
    use super::{Paging, RowPlaces, Sequences};
    use crate::graph::{Step, Type};

    #[test]
    fn positions_and_slots_of_rows() {
        let paging = Paging { page: 4, context: 64, one_sequence: false };
        let words = [Sequences::words(9, 1, &[5, 3], 2), Sequences::words(2, 1, &[7], 2)].concat();
        let ty = Type::u32([2, 6]);
        let rows = RowPlaces::new(&Step::of_rows(2), 99, Some((paging, &words, &ty)));
        assert_eq!([rows.position(0), rows.position(1)], [9, 2]);
        // Page 0 of the first sequence, its page 2, which has replaced page 0, and page 0 of the second sequence.
        assert_eq!([rows.slot(0, 6), rows.slot(0, 9), rows.slot(1, 2)], [14, 21, 30]);
        let step = Step { position: 5, count: 2, ..Step::default() };
        let one = Paging { one_sequence: true, ..paging };
        let rows = RowPlaces::new(&step, 99, Some((one, &words[..6], &ty)));
        assert_eq!([rows.position(1), rows.slot(1, 6)], [6, 14]);
    }
}
