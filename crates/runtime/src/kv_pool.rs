//! Pages of KV memory that many sequences share: who has which, what is kept of finished prompts, and what a request will take.
//!
//! A sequence reserves all the pages it may need when it is admitted and takes them as it grows, so that one that runs never finds the pool
//! empty. What is not reserved keeps the beginnings of prompts for later requests, the least recently used out first.

mod pages;

use rullama_models::decoder::{Kind, PoolShape};

use crate::{error::RuntimeError, session::MediaDigest};
use pages::{BlockTable, Pages};

/// Both kinds of layers, in the order pools and block tables are kept.
pub(crate) const KINDS: [Kind; 2] = [Kind::Global, Kind::Sliding];

/// The pages of all sequences, without the memory itself.
#[derive(Debug)]
pub(crate) struct KvPool {
    shape: PoolShape,
    /// How many positions a token of a sliding layer sees.
    window: usize,
    pages: [Pages; 2],
    prefixes: Vec<Prefix>,
    /// Counts uses of prefixes.
    clock: u64,
}

/// The pages of one sequence. They go back with [`KvPool::release`].
#[derive(Debug)]
pub(crate) struct SequencePages {
    /// Pages reserved of each kind.
    need: [usize; 2],
    tables: [BlockTable; 2],
}

/// What the keys and values of a prompt depend on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PromptKey<'a> {
    /// The number of its adapters.
    pub(crate) adapter: u64,
    /// Its tokens, or the first of them.
    pub(crate) tokens: &'a [u32],
    /// Where its images and audio begin, in order, and what is in them.
    pub(crate) media: &'a [(usize, MediaDigest)],
}

impl PromptKey<'_> {
    /// The media among the first `length` tokens.
    fn media_of(&self, length: usize) -> &[(usize, MediaDigest)] {
        &self.media[..self.media.partition_point(|(position, _)| *position < length)]
    }
}

/// The beginning of a prompt whose pages are kept.
#[derive(Debug)]
struct Prefix {
    adapter: u64,
    tokens: Vec<u32>,
    media: Vec<(usize, MediaDigest)>,
    tables: [BlockTable; 2],
    used: u64,
}

impl Prefix {
    /// Whether a prompt begins with it.
    fn begins(&self, prompt: &PromptKey<'_>) -> bool {
        let length = self.tokens.len();
        self.adapter == prompt.adapter
            && prompt.tokens.get(..length) == Some(&self.tokens[..])
            && prompt.media_of(length) == self.media
    }
}

impl SequencePages {
    /// The block table of layers of a kind, as their kernels read it.
    pub(crate) fn table(&self, kind: usize) -> Vec<u32> {
        self.tables[kind].words()
    }

    /// The slot of a position in the pool of layers of a kind; pages hold `page` tokens.
    pub(crate) fn slot(&self, kind: usize, position: usize, page: usize) -> usize {
        self.tables[kind].page(position / page) as usize * page + position % page
    }

    /// The oldest position that sliding layers still hold.
    pub(crate) fn oldest(&self, page: usize) -> usize {
        self.tables[1].oldest() * page
    }
}

impl KvPool {
    pub(crate) fn new(shape: PoolShape, window: usize) -> Self {
        let pages = KINDS.map(|kind| Pages::new(shape.of(kind).pages));
        Self { shape, window, pages, prefixes: Vec::new(), clock: 0 }
    }

    /// Pages of each kind that a sequence of so many tokens takes.
    fn need(&self, tokens: usize) -> [usize; 2] {
        let all = tokens.div_ceil(self.shape.page);
        KINDS.map(|kind| all.min(self.shape.of(kind).entries))
    }

    /// Refuses a sequence that the pool can never hold.
    pub(crate) fn check(&self, tokens: usize) -> Result<(), RuntimeError> {
        let fits =
            self.need(tokens).iter().zip(&self.pages).all(|(need, pages)| *need <= pages.len());
        let holds = self.pages[0].len() * self.shape.page;
        if fits { Ok(()) } else { Err(RuntimeError::KvPoolTooSmall { tokens, holds }) }
    }

    /// Reserves what a sequence of so many tokens takes; `None` while others have it.
    pub(crate) fn admit(&mut self, tokens: usize) -> Option<SequencePages> {
        let need = self.need(tokens);
        if !need.iter().zip(&self.pages).all(|(need, pages)| pages.has_room(*need)) {
            return None;
        }
        need.iter().zip(&mut self.pages).for_each(|(need, pages)| pages.reserve(*need));
        let tables = KINDS.map(|kind| BlockTable::new(self.shape.of(kind).entries));
        Some(SequencePages { need, tables })
    }

    /// Takes the pages of all positions before `end`.
    ///
    /// # Errors
    /// If there is none left, which a sequence that stays within what it reserved never sees.
    pub(crate) fn cover(
        &mut self,
        sequence: &mut SequencePages,
        end: usize,
    ) -> Result<(), RuntimeError> {
        let wanted = end.div_ceil(self.shape.page);
        for kind in 0..KINDS.len() {
            while sequence.tables[kind].covered() < wanted {
                while !sequence.tables[kind].advance(&mut self.pages[kind]) {
                    if !self.evict() {
                        let pages = self.pages[kind].len();
                        return Err(RuntimeError::KvPoolFull { pages });
                    }
                }
            }
        }
        Ok(())
    }

    /// Gives the pages of a sequence back; those that others share stay.
    pub(crate) fn release(&mut self, sequence: SequencePages) {
        let SequencePages { need, tables } = sequence;
        for ((pages, need), table) in self.pages.iter_mut().zip(need).zip(tables) {
            table.release(pages);
            pages.unreserve(need);
        }
    }

    /// Keeps the pages of a sequence's first tokens for prompts that begin with them. Only whole pages are kept.
    pub(crate) fn keep_prefix(&mut self, sequence: &SequencePages, prompt: PromptKey<'_>) {
        let PromptKey { adapter, tokens, .. } = prompt;
        let whole = tokens.len().is_multiple_of(self.shape.page);
        let known = |prefix: &Prefix| prefix.tokens.len() == tokens.len() && prefix.begins(&prompt);
        if !whole || tokens.is_empty() || self.prefixes.iter().any(known) {
            return;
        }
        let end = tokens.len() / self.shape.page;
        // The next token sees the window before it.
        let seen = (tokens.len() + 1).saturating_sub(self.window) / self.shape.page;
        let [global, sliding] = &sequence.tables;
        let [global_pages, sliding_pages] = &mut self.pages;
        let tables = [global.share(global_pages, 0..end), sliding.share(sliding_pages, seen..end)];
        self.clock += 1;
        let media = prompt.media_of(tokens.len()).into();
        let (tokens, used) = (tokens.into(), self.clock);
        self.prefixes.push(Prefix { adapter, tokens, media, tables, used });
    }

    /// Gives a sequence that has no pages yet those of the longest prefix of its prompt that is kept, the last token excepted: that one is computed for
    /// its logits. Returns how many tokens they hold.
    pub(crate) fn reuse(&mut self, sequence: &mut SequencePages, prompt: PromptKey<'_>) -> usize {
        let begins = |prefix: &&mut Prefix| {
            prefix.tokens.len() < prompt.tokens.len() && prefix.begins(&prompt)
        };
        let longest =
            self.prefixes.iter_mut().filter(begins).max_by_key(|prefix| prefix.tokens.len());
        let Some(prefix) = longest else { return 0 };
        self.clock += 1;
        prefix.used = self.clock;
        for ((table, kept), pages) in
            sequence.tables.iter_mut().zip(&prefix.tables).zip(&mut self.pages)
        {
            *table = kept.share_all(pages);
        }
        prefix.tokens.len()
    }

    /// Forgets the prefixes of an adapter.
    pub(crate) fn forget(&mut self, adapter: u64) {
        let (gone, kept) = std::mem::take(&mut self.prefixes)
            .into_iter()
            .partition(|prefix: &Prefix| prefix.adapter == adapter);
        self.prefixes = kept;
        gone.into_iter().for_each(|prefix| self.drop_prefix(prefix));
    }

    /// Forgets the least recently used prefix; false if there is none.
    fn evict(&mut self) -> bool {
        let oldest = self.prefixes.iter().enumerate().min_by_key(|(_, prefix)| prefix.used);
        let Some(oldest) = oldest.map(|(index, _)| index) else { return false };
        let prefix = self.prefixes.swap_remove(oldest);
        self.drop_prefix(prefix);
        true
    }

    fn drop_prefix(&mut self, prefix: Prefix) {
        prefix
            .tables
            .into_iter()
            .zip(&mut self.pages)
            .for_each(|(table, pages)| table.release(pages));
    }

    /// Pages of global layers: those that running sequences have reserved, those that hold tokens, and all of them.
    pub(crate) fn usage(&self) -> (usize, usize, usize) {
        let pages = &self.pages[0];
        (pages.reserved(), pages.len() - pages.free(), pages.len())
    }

    /// Pages of each kind that nobody holds.
    #[cfg(test)]
    fn free(&self) -> [usize; 2] {
        [self.pages[0].free(), self.pages[1].free()]
    }
}

#[cfg(test)]
mod tests {
    use rullama_models::decoder::{PoolPages, PoolShape};

    use super::{KvPool, PromptKey};
    use crate::{error::RuntimeError, session::MediaDigest};

    /// Pages of 4 tokens, sequences of at most 32; sliding layers see 6 and take passes of 4.
    fn pool(pages: usize) -> KvPool {
        let shape = PoolShape {
            page: 4,
            global: PoolPages { pages, entries: 8 },
            sliding: PoolPages { pages, entries: 4 },
            gemm: false,
            slots: 4,
        };
        KvPool::new(shape, 6)
    }

    fn key(adapter: u64, tokens: &[u32]) -> PromptKey<'_> {
        PromptKey { adapter, tokens, media: &[] }
    }

    #[test]
    fn what_a_sequence_takes_is_reserved_before_it_runs() {
        let mut pool = pool(8);
        assert!(matches!(pool.check(33), Ok(())), "a ring of 8 entries holds it");
        let first = pool.admit(20).expect("five pages of eight");
        assert!(pool.admit(16).is_none(), "four more are not there");
        let second = pool.admit(12).expect("three are");
        pool.release(first);
        pool.release(second);
        assert!(pool.admit(32).is_some());
        let small = KvPool::new(
            PoolShape {
                page: 4,
                global: PoolPages { pages: 2, entries: 8 },
                sliding: PoolPages { pages: 8, entries: 4 },
                gemm: false,
                slots: 4,
            },
            6,
        );
        assert!(matches!(
            small.check(9),
            Err(RuntimeError::KvPoolTooSmall { tokens: 9, holds: 8 })
        ));
    }

    #[test]
    fn sliding_tables_are_rings_and_all_pages_come_back() {
        let mut pool = pool(8);
        let mut sequence = pool.admit(32).expect("room");
        pool.cover(&mut sequence, 16).expect("pages");
        let before = sequence.table(1);
        pool.cover(&mut sequence, 32).expect("pages");
        assert_eq!(sequence.table(0).len(), 8);
        assert_eq!(sequence.table(1), before, "nobody else holds the pages that left the window");
        assert_eq!(pool.free(), [0, 4]);
        pool.release(sequence);
        assert_eq!(pool.free(), [8, 8]);
    }

    #[test]
    fn prompts_share_what_they_begin_with() {
        let mut pool = pool(12);
        let prompt: Vec<u32> = (0..20).collect();
        let mut first = pool.admit(24).expect("room");
        pool.cover(&mut first, 8).expect("pages");
        pool.keep_prefix(&first, key(0, &prompt[..8]));
        let shared = first.table(0)[..2].to_vec();
        pool.cover(&mut first, 24).expect("pages");
        let mut second = pool.admit(20).expect("room");
        assert_eq!(pool.reuse(&mut second, key(1, &prompt)), 0, "another adapter's");
        assert_eq!(pool.reuse(&mut second, key(0, &prompt[..8])), 0, "the last token is computed");
        assert_eq!(pool.reuse(&mut second, key(0, &prompt)), 8);
        assert_eq!(second.table(0)[..2], shared);
        pool.cover(&mut second, 20).expect("pages");
        // The first sequence's ring went round; the pages of the prefix were not overwritten.
        assert_eq!(second.table(0)[..2], shared);
        assert_ne!(first.table(1)[1], second.table(1)[1]);
        pool.release(first);
        pool.release(second);
        assert_eq!(pool.free(), [10, 10], "the prefix has two pages of each kind");
        assert!(pool.evict() && !pool.evict());
        assert_eq!(pool.free(), [12, 12]);
    }

    fn prompt<'a>(tokens: &'a [u32], media: &'a [(usize, MediaDigest)]) -> PromptKey<'a> {
        PromptKey { adapter: 0, tokens, media }
    }

    #[test]
    fn prompts_with_other_images_share_nothing() {
        let mut pool = pool(12);
        let tokens: Vec<u32> = (0..12).collect();
        let image = |content: u8| [(2, [content; 32]), (9, [0; 32])];
        let mut first = pool.admit(12).expect("room");
        pool.cover(&mut first, 8).expect("pages");
        let media = image(1);
        pool.keep_prefix(&first, PromptKey { tokens: &tokens[..8], ..prompt(&tokens, &media) });
        let mut second = pool.admit(12).expect("room");
        assert_eq!(
            pool.reuse(&mut second, prompt(&tokens, &image(2))),
            0,
            "the same ids, other content"
        );
        assert_eq!(pool.reuse(&mut second, prompt(&tokens, &[])), 0);
        assert_eq!(pool.reuse(&mut second, prompt(&tokens, &[image(1)[0], (9, [5; 32])])), 8);
    }

    #[test]
    fn prefixes_make_room_for_those_that_run() {
        let mut pool = pool(8);
        for start in [0, 100] {
            let prompt: Vec<u32> = (start..start + 8).collect();
            let mut sequence = pool.admit(8).expect("room");
            pool.cover(&mut sequence, 8).expect("pages");
            pool.keep_prefix(&sequence, key(0, &prompt));
            pool.release(sequence);
        }
        assert_eq!(pool.free(), [4, 4]);
        let mut sequence = pool.admit(32).expect("nothing is reserved");
        pool.cover(&mut sequence, 24).expect("the older prefix goes");
        assert_eq!(pool.prefixes.len(), 1);
        assert_eq!(pool.prefixes[0].tokens[0], 100);
        pool.cover(&mut sequence, 32).expect("the other one too");
        pool.release(sequence);
    }

    /// Whatever comes and goes: one that runs always gets its pages, and in the end all come back.
    #[test]
    fn ten_thousand_sequences_leave_no_page_behind() {
        let mut pool = pool(20);
        let mut random = 7_u64;
        let mut below = |end: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((random >> 33) % end) as usize
        };
        let mut running = Vec::new();
        for number in 0..10_000 {
            // A few beginnings, so that some are shared.
            let most = 1 + below(32);
            let start = below(3) as u32 * 100;
            let prompt: Vec<u32> = (start..).take(most).collect();
            if let Some(mut sequence) = pool.admit(most) {
                let filled = pool.reuse(&mut sequence, key(0, &prompt));
                assert!(filled < most);
                running.push((sequence, prompt, filled));
            }
            while running.len() > below(6) {
                let at = below(running.len() as u64);
                let (mut sequence, prompt, mut filled) = running.swap_remove(at);
                // Some are cancelled before their end.
                let end = filled + below((prompt.len() - filled) as u64 + 1);
                while filled < end {
                    filled = (filled + 4).min(end);
                    pool.cover(&mut sequence, filled).expect("it was reserved");
                    if filled.is_multiple_of(4) {
                        pool.keep_prefix(&sequence, key(0, &prompt[..filled]));
                    }
                }
                if below(2) == 0 || number > 9_900 {
                    pool.release(sequence);
                } else {
                    running.push((sequence, prompt, filled));
                }
            }
        }
        running.into_iter().for_each(|(sequence, ..)| pool.release(sequence));
        while pool.evict() {}
        assert_eq!(pool.free(), [20, 20]);
    }
}
