//! A slow reference encoder that follows the definition literally: symbols as strings, a scan for each merge.

use std::collections::HashMap;

use rullama_tokenizer::{Special, Vocab};

/// The vocabulary of the slow reference.
pub(crate) struct Reference {
    ids: HashMap<&'static str, u32>,
    ranks: HashMap<(&'static str, &'static str), usize>,
    types: Vec<i64>,
    /// Special tokens, longest first.
    specials: Vec<(&'static str, u32)>,
}

impl Reference {
    pub(crate) fn new(vocab: &Vocab<'static>) -> Self {
        let ids: HashMap<_, _> = vocab.tokens.iter().copied().zip(0..).collect();
        let mut ranks = HashMap::new();
        for (rank, merge) in vocab.merges.iter().enumerate() {
            let pair = merge.split_once(' ').expect("a merge has a space");
            ranks.entry(pair).or_insert(rank);
        }
        let mut types = vocab.types.clone();
        for end in ["<eos>", "<turn|>", "<|tool_response>"] {
            types[ids[end] as usize] = 3;
        }
        let mut specials: Vec<_> = vocab
            .tokens
            .iter()
            .copied()
            .zip(0..)
            .filter(|&(_, id)| [2, 3, 4].contains(&types[id as usize]))
            .collect();
        specials.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        Self { ids, ranks, types, specials }
    }

    pub(crate) fn encode(&self, text: &str, special: Special) -> Vec<u32> {
        let mut fragments = vec![Fragment::Text(text)];
        for &(marker, id) in &self.specials {
            let matched = match self.types[id as usize] {
                4 => special != Special::None,
                _ => special == Special::Parse,
            };
            if matched {
                fragments = fragments.iter().flat_map(|f| f.split(marker, id)).collect();
            }
        }
        fragments.iter().flat_map(|fragment| self.encode_fragment(fragment)).collect()
    }

    fn encode_fragment(&self, fragment: &Fragment<'_>) -> Vec<u32> {
        let text = match fragment {
            Fragment::Token(id) => return vec![*id],
            Fragment::Text(text) => text.replace(' ', "▁"),
        };
        let chars: Vec<char> = text.chars().collect();
        let words = chars.chunk_by(|a, b| (*a == '\n') == (*b == '\n'));
        words.flat_map(|word| self.merge(word)).collect()
    }

    fn merge(&self, word: &[char]) -> Vec<u32> {
        let mut symbols: Vec<String> = word.iter().map(char::to_string).collect();
        loop {
            let rank = |i: &usize| {
                self.ranks.get(&(symbols[i - 1].as_str(), symbols[*i].as_str())).map(|&r| (r, *i))
            };
            let Some((_, right)) = (1..symbols.len()).filter_map(|i| rank(&i)).min() else { break };
            let tail = symbols.remove(right);
            symbols[right - 1] += &tail;
        }
        symbols.iter().flat_map(|symbol| self.ids_of(symbol)).collect()
    }

    fn ids_of(&self, symbol: &str) -> Vec<u32> {
        let byte = |b: u8| self.ids.get(format!("<0x{b:02X}>").as_str()).copied();
        match self.ids.get(symbol) {
            Some(&id) => vec![id],
            None => symbol.bytes().map(|b| byte(b).unwrap_or(self.ids["<unk>"])).collect(),
        }
    }
}

enum Fragment<'a> {
    Token(u32),
    Text(&'a str),
}

impl<'a> Fragment<'a> {
    /// This fragment split at every occurrence of a marker.
    fn split(&self, marker: &str, id: u32) -> Vec<Self> {
        let text = match *self {
            Self::Token(id) => return vec![Fragment::Token(id)],
            Self::Text(text) => text,
        };
        let mut parts = Vec::new();
        for (i, part) in text.split(marker).enumerate() {
            if i > 0 {
                parts.push(Fragment::Token(id));
            }
            parts.push(Fragment::Text(part));
        }
        parts
    }
}
