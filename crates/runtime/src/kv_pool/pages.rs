//! Pages with reference counts, and the block tables that hold them.

use std::ops::Range;

/// The pages of one kind of layers.
#[derive(Debug)]
pub(super) struct Pages {
    /// How many block tables hold each page.
    holders: Vec<u32>,
    free: Vec<u32>,
    /// Pages that running sequences hold or may still take.
    reserved: usize,
}

impl Pages {
    pub(super) fn new(count: usize) -> Self {
        // Positions fit 32 bits, and so do pages. The first page is taken first.
        Self { holders: vec![0; count], free: (0..count as u32).rev().collect(), reserved: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.holders.len()
    }

    pub(super) fn reserved(&self) -> usize {
        self.reserved
    }

    pub(super) fn free(&self) -> usize {
        self.free.len()
    }

    pub(super) fn has_room(&self, pages: usize) -> bool {
        self.reserved + pages <= self.len()
    }

    pub(super) fn reserve(&mut self, pages: usize) {
        self.reserved += pages;
    }

    pub(super) fn unreserve(&mut self, pages: usize) {
        self.reserved -= pages;
    }

    fn take(&mut self) -> Option<u32> {
        let page = self.free.pop()?;
        self.holders[page as usize] = 1;
        Some(page)
    }

    fn share(&mut self, page: u32) {
        self.holders[page as usize] += 1;
    }

    fn release(&mut self, page: u32) {
        let holders = &mut self.holders[page as usize];
        *holders -= 1;
        if *holders == 0 {
            self.free.push(page);
        }
    }

    fn is_shared(&self, page: u32) -> bool {
        self.holders[page as usize] > 1
    }
}

/// Which page holds which positions of a sequence: page number `i` of the sequence is entry `i % entries`.
#[derive(Debug)]
pub(super) struct BlockTable {
    entries: Vec<Option<u32>>,
    /// Pages of the sequence that have been taken; those that left a ring are counted.
    covered: usize,
}

impl BlockTable {
    pub(super) fn new(entries: usize) -> Self {
        Self { entries: vec![None; entries], covered: 0 }
    }

    pub(super) fn covered(&self) -> usize {
        self.covered
    }

    /// Takes the sequence's next page: in a ring that of the positions which left the window, unless others hold that one too. False if there is
    /// no page.
    pub(super) fn advance(&mut self, pages: &mut Pages) -> bool {
        let entry = self.covered % self.entries.len();
        match self.entries[entry] {
            Some(page) if !pages.is_shared(page) => {}
            old => {
                let Some(page) = pages.take() else { return false };
                old.into_iter().for_each(|page| pages.release(page));
                self.entries[entry] = Some(page);
            }
        }
        self.covered += 1;
        true
    }

    /// A table that holds some of the sequence's pages as well.
    pub(super) fn share(&self, pages: &mut Pages, range: Range<usize>) -> Self {
        let mut entries = vec![None; self.entries.len()];
        for number in range.clone() {
            let entry = number % self.entries.len();
            entries[entry] = self.entries[entry];
            entries[entry].into_iter().for_each(|page| pages.share(page));
        }
        Self { entries, covered: range.end }
    }

    /// A table that holds all of its pages as well.
    pub(super) fn share_all(&self, pages: &mut Pages) -> Self {
        self.entries.iter().flatten().for_each(|page| pages.share(*page));
        Self { entries: self.entries.clone(), covered: self.covered }
    }

    pub(super) fn release(self, pages: &mut Pages) {
        self.entries.into_iter().flatten().for_each(|page| pages.release(page));
    }

    /// The page with this number in the sequence, which holds it.
    pub(super) fn page(&self, number: usize) -> u32 {
        self.entries[number % self.entries.len()].unwrap_or(0)
    }

    /// The number of the oldest page that is still held.
    pub(super) fn oldest(&self) -> usize {
        self.covered.saturating_sub(self.entries.len())
    }

    /// As kernels read it; entries without a page are never read.
    pub(super) fn words(&self) -> Vec<u32> {
        self.entries.iter().map(|page| page.unwrap_or(0)).collect()
    }
}
