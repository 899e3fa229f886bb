//! Finds special tokens written out in text.

use std::{cmp::Reverse, collections::BTreeMap, ops::Range};

use crate::{TokenizerError, kind::Kind, texts::Texts};

/// The longest special token in bytes. Real ones have a few dozen; each length costs a lookup at every position of a text.
const LONGEST: usize = 256;

/// Which special tokens are recognised when they are written out in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Special {
    /// All of them: text from a chat template.
    Parse,
    /// Only user-defined ones that do not end generation, as other engines do with special-token parsing off.
    UserDefined,
    /// Only whitespace and HTML tags: text from a user. Other markers are encoded as ordinary text.
    None,
}

/// A part of a prompt, by origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span<'a> {
    /// From the template: special tokens are recognised.
    Template(&'a str),
    /// From a user, a tool or a document: nothing is recognised.
    Text(&'a str),
}

/// A special token found at a position in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Marker {
    pub(crate) place: Range<usize>,
    pub(crate) id: u32,
}

/// The special tokens, for finding them in text.
#[derive(Debug)]
pub(crate) struct Markers {
    /// Marker ids sorted by text, so that markers with a common prefix are adjacent.
    sorted: Vec<u32>,
    /// Per byte: the index in `sorted` of the first marker that begins with it, and of the first that begins with the next byte.
    first: Vec<u32>,
    /// Bytes for which every marker that begins with one is a run of that byte: Gemma 3 has runs of spaces and newlines.
    runs: Vec<bool>,
}

impl Markers {
    pub(crate) fn new(texts: &Texts, kinds: &[Kind]) -> Result<Self, TokenizerError> {
        let text = |id: &u32| texts.get(*id).unwrap_or_default().as_bytes();
        let ids = (0..).zip(kinds).filter(|(_, kind)| recognised(**kind, Special::Parse));
        let mut sorted: Vec<u32> =
            ids.map(|(id, _)| id).filter(|id| !text(id).is_empty()).collect();
        if let Some(&id) = sorted.iter().find(|id| text(id).len() > LONGEST) {
            let bytes = text(&id).len();
            return Err(TokenizerError::MarkerTooLong { id, bytes, limit: LONGEST });
        }
        shell_sort(&mut sorted, text);
        let starts =
            |byte: usize| sorted.partition_point(|id| usize::from(text(id)[0]) < byte) as u32;
        let first: Vec<u32> = (0..=256).map(starts).collect();
        let is_run = |id: &u32| text(id).iter().all(|byte| *byte == text(id)[0]);
        let runs = first.windows(2).map(|pair| {
            let markers = &sorted[pair[0] as usize..pair[1] as usize];
            !markers.is_empty() && markers.iter().all(is_run)
        });
        Ok(Self { runs: runs.collect(), first, sorted })
    }

    /// The markers in `text`, in order and without overlaps. Longer ones take precedence, then lower ids, then those further
    /// left.
    pub(crate) fn find(
        &self,
        text: &str,
        texts: &Texts,
        is_marker: impl Fn(&Marker) -> bool,
    ) -> Vec<Marker> {
        let bytes = text.as_bytes();
        let mut found: Vec<Marker> = Vec::new();
        let (mut end, mut next) = (0, 0);
        while next < bytes.len() {
            let start = next;
            next += 1;
            if start >= end && self.runs[usize::from(bytes[start])] {
                // No marker that begins later in the run can take precedence.
                if let Some(marker) = self.longest_run(bytes, start, texts, &is_marker) {
                    end = marker.place.end;
                    next = end;
                    found.push(marker);
                }
                continue;
            }
            let mut longest = None;
            self.at(&bytes[start..], texts, |len, id| {
                let marker = Marker { place: start..start + len, id };
                if is_marker(&marker) {
                    longest = Some(marker);
                }
            });
            let Some(marker) = longest else { continue };
            match found.last() {
                // Overlaps are rare except in runs of one whitespace byte, where the leftmost is the longest.
                Some(last) if start < end => {
                    if (Reverse(marker.place.len()), marker.id)
                        < (Reverse(last.place.len()), last.id)
                    {
                        return self.find_overlapping(bytes, texts, is_marker);
                    }
                }
                _ => {
                    end = marker.place.end;
                    found.push(marker);
                }
            }
        }
        found
    }

    /// The longest marker at `start`, where all markers that begin with this byte are runs of it, hence sorted by length.
    fn longest_run(
        &self,
        bytes: &[u8],
        start: usize,
        texts: &Texts,
        is_marker: &impl Fn(&Marker) -> bool,
    ) -> Option<Marker> {
        let byte = bytes[start];
        let run = bytes[start..].iter().take(LONGEST).take_while(|other| **other == byte).count();
        let bounds = |byte: usize| self.first[byte] as usize;
        let markers = &self.sorted[bounds(byte.into())..bounds(usize::from(byte) + 1)];
        let len = |id: &u32| texts.get(*id).unwrap_or_default().len();
        let fitting = &markers[..markers.partition_point(|id| len(id) <= run)];
        let mut longest_first = fitting.iter().rev();
        longest_first.find_map(|id| {
            let marker = Marker { place: start..start + len(id), id: *id };
            is_marker(&marker).then_some(marker)
        })
    }

    /// The markers in `bytes` where one overlaps one of higher precedence further left.
    fn find_overlapping(
        &self,
        bytes: &[u8],
        texts: &Texts,
        is_marker: impl Fn(&Marker) -> bool,
    ) -> Vec<Marker> {
        let mut found = Vec::new();
        for start in 0..bytes.len() {
            self.at(&bytes[start..], texts, |len, id| {
                found.push(Marker { place: start..start + len, id });
            });
        }
        found.retain(is_marker);
        without_overlaps(found)
    }

    /// Calls `found` with the length and id of each marker that is a prefix of `rest`, shortest first.
    #[inline]
    fn at(&self, rest: &[u8], texts: &Texts, mut found: impl FnMut(usize, u32)) {
        let Some(&byte) = rest.first() else { return };
        let bounds = |byte: usize| self.first[byte] as usize;
        let mut candidates = &self.sorted[bounds(byte.into())..bounds(usize::from(byte) + 1)];
        let text = |id: &u32| texts.get(*id).unwrap_or_default().as_bytes();
        let mut len = 1;
        while let Some(first) = candidates.first() {
            if text(first).len() == len {
                found(len, *first);
                candidates = &candidates[1..];
            }
            let Some(&byte) = rest.get(len) else { return };
            // Of the markers with this prefix, those whose next byte matches.
            let start = candidates.partition_point(|id| text(id)[len] < byte);
            let count = candidates[start..].partition_point(|id| text(id)[len] == byte);
            candidates = &candidates[start..start + count];
            len += 1;
        }
    }
}

/// Whether text equal to a token of this kind is encoded as the token.
pub(crate) fn recognised(kind: Kind, special: Special) -> bool {
    match kind {
        Kind::Control | Kind::Unknown => special == Special::Parse,
        Kind::UserDefined => special != Special::None,
        Kind::Verbatim => true,
        Kind::Normal | Kind::Unused | Kind::Byte(_) => false,
    }
}

/// Removes markers that overlap one of higher precedence.
fn without_overlaps(mut found: Vec<Marker>) -> Vec<Marker> {
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

/// Sorts by a key. The standard library's sort would add several kilobytes to the wasm download, for one list of a few
/// thousand entries.
fn shell_sort<'t>(ids: &mut [u32], key: impl Fn(&u32) -> &'t [u8]) {
    let mut gap = ids.len() / 2;
    while gap > 0 {
        for end in gap..ids.len() {
            let mut at = end;
            while at >= gap && key(&ids[at - gap]) > key(&ids[at]) {
                ids.swap(at - gap, at);
                at -= gap;
            }
        }
        // The last gap is 1.
        gap = if gap == 2 { 1 } else { gap * 5 / 11 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_by_key() {
        for len in 0..300_u32 {
            let texts: Vec<[u8; 4]> =
                (0..len).map(|i| i.wrapping_mul(0x9E37_79B9).to_be_bytes()).collect();
            let mut ids: Vec<u32> = (0..len).collect();
            shell_sort(&mut ids, |id| &texts[*id as usize]);
            assert!(ids.is_sorted_by_key(|id| texts[*id as usize]), "{len}");
        }
    }
}
