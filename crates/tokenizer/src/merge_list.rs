//! The merge list of a file, resolved to ids.

use crate::{TokenizerError, joints::Joints, kind::Kind, texts::Texts, tokenizer::LIMIT};

/// Two pieces and their merged piece.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListedMerge {
    pub(crate) left: u32,
    pub(crate) right: u32,
    pub(crate) merged: u32,
    /// Lower ranks are applied first; of equal ranks the leftmost.
    pub(crate) rank: u32,
}

/// Merges in order of rank, and the characters they can join.
pub(crate) struct MergeList {
    pub(crate) merges: Vec<ListedMerge>,
    pub(crate) joints: Joints,
}

/// The longest token that merges are derived for, in bytes. Every split of a token looks up both sides, so this bounds
/// how often each byte of the vocabulary is hashed. Gemma's longest is 31 times `▁`, 93 bytes.
const LONGEST: usize = 512;

/// Merges per batch of lookups.
const AT_ONCE: usize = 32;

impl MergeList {
    /// Looks up the pieces of `list`, whose length fits a rank.
    pub(crate) fn new(
        list: &[&str],
        texts: &Texts,
        is_piece: &impl Fn(u32) -> bool,
    ) -> Result<Self, TokenizerError> {
        let mut resolved = Self { merges: Vec::with_capacity(list.len()), joints: Joints::new() };
        for chunk in list.chunks(AT_ONCE) {
            resolved.push_chunk(chunk, texts, is_piece)?;
        }
        Ok(resolved)
    }

    /// All splits of a token into two others, best score first, equal scores with equal ranks: the merges of a
    /// SentencePiece vocabulary.
    pub(crate) fn by_score(
        scores: &[f32],
        texts: &Texts,
        kinds: &[Kind],
    ) -> Result<Self, TokenizerError> {
        let mut list = Self { merges: Vec::new(), joints: Joints::new() };
        let is_normal = |id: u32| kinds[id as usize] == Kind::Normal;
        let scored = (0..texts.len()).zip(scores).filter(|(_, score)| score.is_finite());
        let mut order: Vec<(u32, f32)> = scored.map(|(id, score)| (id, *score)).collect();
        order.retain(|(id, _)| is_normal(*id));
        order.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        let mut rank = 0;
        let mut last_score = None;
        for (merged, score) in order {
            if last_score.is_some_and(|last| last != score) {
                rank += 1;
            }
            last_score = Some(score);
            let text = texts.get(merged).unwrap_or_default();
            let bytes = text.len();
            if bytes > LONGEST {
                return Err(TokenizerError::PieceTooLong { id: merged, bytes, limit: LONGEST });
            }
            let id_of = |piece: &str| texts.id_of(piece.as_bytes()).filter(|id| is_normal(*id));
            for (cut, _) in text.char_indices().skip(1) {
                let (first, second) = text.split_at(cut);
                let Some(left) = id_of(first) else { continue };
                let Some(right) = id_of(second) else { continue };
                list.merges.push(ListedMerge { left, right, merged, rank });
                list.joints.insert(first, second);
            }
            let count = list.merges.len();
            if count > LIMIT {
                return Err(TokenizerError::TooMany { array: "merges", count, limit: LIMIT });
            }
        }
        Ok(list)
    }

    fn push_chunk(
        &mut self,
        chunk: &[&str],
        texts: &Texts,
        is_piece: &impl Fn(u32) -> bool,
    ) -> Result<(), TokenizerError> {
        let start = self.merges.len();
        let mut pairs = [("", ""); AT_ONCE];
        for (i, (pair, text)) in pairs.iter_mut().zip(chunk).enumerate() {
            *pair = halves(text).ok_or_else(|| TokenizerError::malformed_merge(start + i, text))?;
        }
        let lefts = texts.ids_of(pairs.map(|(left, _)| left));
        let rights = texts.ids_of(pairs.map(|(_, right)| right));
        for (i, (left, right)) in pairs.into_iter().take(chunk.len()).enumerate() {
            let piece = |parts: &[&str], id| piece(parts, id, start + i, is_piece);
            let joined = self
                .next_joined(left, right, texts)
                .or_else(|| texts.id_of([left, right].concat().as_bytes()));
            self.merges.push(ListedMerge {
                left: piece(&[left], lefts[i])?,
                right: piece(&[right], rights[i])?,
                merged: piece(&[left, right], joined)?,
                rank: (start + i) as u32,
            });
            self.joints.insert(left, right);
        }
        Ok(())
    }

    /// The token `left` + `right`, if it is the previous merge's result or the token after it.
    ///
    /// Lists are written token by token, with all splits of each, so nearly every lookup ends here.
    fn next_joined(&self, left: &str, right: &str, texts: &Texts) -> Option<u32> {
        let last = self.merges.last()?.merged;
        let is_joined = |id: &u32| texts.get(*id).and_then(|t| t.strip_prefix(left)) == Some(right);
        [last, last + 1].into_iter().find(is_joined)
    }
}

/// `id`, if it is present and merges may produce it.
fn piece(
    parts: &[&str],
    id: Option<u32>,
    index: usize,
    is_piece: &impl Fn(u32) -> bool,
) -> Result<u32, TokenizerError> {
    match id {
        Some(id) if is_piece(id) => Ok(id),
        Some(_) => Err(TokenizerError::special_piece(index, &parts.concat())),
        None => Err(TokenizerError::unknown_piece(index, &parts.concat())),
    }
}

/// The two pieces of "left right". A space may only be the first character of a piece.
fn halves(merge: &str) -> Option<(&str, &str)> {
    let first = merge.chars().next()?.len_utf8();
    let (left, right) = merge.split_at(first + merge[first..].find(' ')?);
    let right = &right[1..];
    (!right.is_empty()).then_some((left, right))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Left, right, merged and rank.
    fn by_score(tokens: &[&str], types: &[i64], scores: &[f32]) -> Vec<[u32; 4]> {
        let texts = Texts::new(tokens).expect("texts");
        let kind = |(id, (kind, text)): (u32, (&i64, &&str))| Kind::new(id, *kind, text, false);
        let kinds: Result<Vec<Kind>, _> = (0..).zip(types.iter().zip(tokens)).map(kind).collect();
        let list = MergeList::by_score(scores, &texts, &kinds.expect("types")).expect("merges");
        list.merges.iter().map(|m| [m.left, m.right, m.merged, m.rank]).collect()
    }

    #[test]
    fn scores_rank_all_splits_of_a_token() {
        let tokens = ["a", "b", "ab", "ba", "aba", "<x>", "a<x>", "▁", "▁é", "é", "bab"];
        let types = [1, 1, 1, 1, 1, 4, 1, 1, 1, 1, 1];
        let scores = [0.0, 0.0, -2.0, -3.0, -1.0, 0.0, 9.0, 0.0, -3.0, 0.0, f32::NAN];
        let merges = by_score(&tokens, &types, &scores);
        // Best score first, equal scores with equal ranks; no merges into special tokens or tokens without a score.
        let want = [[0, 3, 4, 2], [2, 0, 4, 2], [0, 1, 2, 3], [1, 0, 3, 4], [7, 9, 8, 4]];
        assert_eq!(merges, want);
    }

    #[test]
    fn merges_by_score_are_at_most_the_number_of_splits() {
        let runs: Vec<String> = (1..=LONGEST).map(|n| "a".repeat(n)).collect();
        let tokens: Vec<&str> = runs.iter().map(String::as_str).collect();
        let merges = by_score(&tokens, &vec![1; LONGEST], &vec![0.0; LONGEST]);
        assert_eq!(merges.len(), LONGEST * (LONGEST - 1) / 2);
    }

    #[test]
    fn a_merge_is_split_at_the_first_space_after_its_first_character() {
        for (merge, want) in [
            ("a b", Some(("a", "b"))),
            ("▁ ▁", Some(("▁", "▁"))),
            ("\n \n\n", Some(("\n", "\n\n"))),
            ("  b", Some((" ", "b"))),
            ("a b c", Some(("a", "b c"))),
            ("a  ", Some(("a", " "))),
            ("ab", None),
            ("a ", None),
            (" b", None),
            (" ", None),
            ("", None),
        ] {
            assert_eq!(halves(merge), want, "{merge:?}");
        }
    }
}
