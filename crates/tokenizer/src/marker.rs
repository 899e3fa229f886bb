//! Finding special tokens written out in text.

use std::{cmp::Reverse, collections::BTreeMap, ops::Range};

use crate::{TokenizerError, kind::Kind, texts::Texts};

/// The longest special token. Real ones have a few dozen bytes; every length costs a look-up at every place of a text.
const LONGEST: usize = 256;

/// Which special tokens are recognised when they are written out in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Special {
    /// All of them: text from a chat template.
    Parse,
    /// Only user-defined ones that do not end generation, as other engines do when told not to parse special tokens.
    UserDefined,
    /// None: text from a user. A written marker becomes ordinary pieces.
    None,
}

/// A piece of a prompt, by where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span<'a> {
    /// From the template: special tokens are recognised.
    Template(&'a str),
    /// From a user, a tool or a document: nothing is recognised.
    Text(&'a str),
}

/// A special token at a place in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Marker {
    pub(crate) place: Range<usize>,
    pub(crate) id: u32,
}

/// The special tokens, for finding them in text.
#[derive(Debug)]
pub(crate) struct Markers {
    /// Bytes that some marker begins with.
    first: [bool; 256],
    /// Lengths of markers in bytes, ascending.
    lengths: Vec<usize>,
}

impl Markers {
    pub(crate) fn new(texts: &Texts, kinds: &[Kind]) -> Result<Self, TokenizerError> {
        let mut first = [false; 256];
        let mut lengths = Vec::new();
        for (id, &kind) in (0..).zip(kinds) {
            let text = texts.get(id).unwrap_or_default().as_bytes();
            if let (true, Some(&byte)) = (recognised(kind, Special::Parse), text.first()) {
                let bytes = text.len();
                if bytes > LONGEST {
                    return Err(TokenizerError::MarkerTooLong { id, bytes, limit: LONGEST });
                }
                first[usize::from(byte)] = true;
                lengths.push(text.len());
            }
        }
        lengths.sort_unstable();
        lengths.dedup();
        Ok(Self { first, lengths })
    }

    /// The markers in `text[from..]`, in order and apart from each other. Longer ones go before shorter ones, then
    /// those with the lower id, then those further left.
    pub(crate) fn find(
        &self,
        text: &str,
        from: usize,
        is_marker: impl Fn(&[u8]) -> Option<u32>,
    ) -> Vec<Marker> {
        let bytes = text.as_bytes();
        let mut found = Vec::new();
        for start in from..bytes.len() {
            if !self.first[usize::from(bytes[start])] {
                continue;
            }
            let rest = &bytes[start..];
            let candidates = self.lengths.iter().map_while(|&len| rest.get(..len));
            found.extend(candidates.filter_map(|candidate| {
                let id = is_marker(candidate)?;
                Some(Marker { place: start..start + candidate.len(), id })
            }));
        }
        if found.is_sorted_by(|a, b| a.place.end <= b.place.start) { found } else { apart(found) }
    }
}

/// Whether a written token of this kind stands for the token.
pub(crate) fn recognised(kind: Kind, special: Special) -> bool {
    match kind {
        Kind::Control | Kind::Unknown => special == Special::Parse,
        Kind::UserDefined => special != Special::None,
        Kind::Normal | Kind::Unused | Kind::Byte(_) => false,
    }
}

/// Leaves out markers that overlap a preferred one.
fn apart(mut found: Vec<Marker>) -> Vec<Marker> {
    found.sort_unstable_by_key(|m| (Reverse(m.place.len()), m.id, m.place.start));
    let mut kept: BTreeMap<usize, Marker> = BTreeMap::new();
    for marker in found {
        let before = kept.range(..marker.place.end).next_back();
        if before.is_none_or(|(_, before)| before.place.end <= marker.place.start) {
            kept.insert(marker.place.start, marker);
        }
    }
    kept.into_values().collect()
}
