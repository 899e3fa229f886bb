//! Single-character tokens.

/// A table from characters to the ids of their tokens, in pages of 256 characters.
#[derive(Debug)]
pub(crate) struct Chars {
    /// Index into `pages` for each 256 characters; page 0 is empty.
    index: Vec<u16>,
    pages: Vec<[u32; 256]>,
}

/// Marks a character without a token; greater than any id.
const NONE: u32 = u32::MAX;

impl Chars {
    pub(crate) fn new() -> Self {
        Self { index: vec![0; char::MAX as usize / 256 + 1], pages: vec![[NONE; 256]] }
    }

    pub(crate) fn insert(&mut self, c: char, id: u32) {
        let page = &mut self.index[c as usize / 256];
        if *page == 0 {
            // At most 0x110000 / 256 pages, which fits a u16.
            *page = self.pages.len() as u16;
            self.pages.push([NONE; 256]);
        }
        self.pages[*page as usize][c as usize % 256] = id;
    }

    #[inline]
    pub(crate) fn get(&self, c: char) -> Option<u32> {
        let page = self.index[c as usize / 256];
        let id = self.pages[page as usize][c as usize % 256];
        (id != NONE).then_some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_only_inserted_characters() {
        let mut chars = Chars::new();
        for (c, id) in [('\0', 7), ('a', 0), ('▁', 3), (char::MAX, 9)] {
            chars.insert(c, id);
            assert_eq!(chars.get(c), Some(id));
        }
        for c in ['b', '\u{1}', '▂', '\u{10FFFE}', 'é'] {
            assert_eq!(chars.get(c), None);
        }
    }
}
