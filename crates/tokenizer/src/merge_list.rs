//! The merge list as a file states it, made into ids.

use crate::{TokenizerError, joints::Joints, kind::Kind, texts::Texts};

/// Two pieces and the one they become.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListedMerge {
    pub(crate) left: u32,
    pub(crate) right: u32,
    pub(crate) merged: u32,
}

/// Merges in the order of their ranks, and the characters they can join.
pub(crate) struct MergeList {
    pub(crate) merges: Vec<ListedMerge>,
    pub(crate) joints: Joints,
}

/// Merges that are looked up together.
const AT_ONCE: usize = 32;

impl MergeList {
    /// Finds the pieces of `list`, which is no longer than ranks go, in the vocabulary.
    pub(crate) fn new(
        list: &[&str],
        texts: &Texts,
        kinds: &[Kind],
    ) -> Result<Self, TokenizerError> {
        let mut resolved = Self { merges: Vec::with_capacity(list.len()), joints: Joints::new() };
        for chunk in list.chunks(AT_ONCE) {
            resolved.push_chunk(chunk, texts, kinds)?;
        }
        Ok(resolved)
    }

    fn push_chunk(
        &mut self,
        chunk: &[&str],
        texts: &Texts,
        kinds: &[Kind],
    ) -> Result<(), TokenizerError> {
        let start = self.merges.len();
        let mut pairs = [("", ""); AT_ONCE];
        for (i, (pair, text)) in pairs.iter_mut().zip(chunk).enumerate() {
            *pair = halves(text).ok_or_else(|| TokenizerError::malformed_merge(start + i, text))?;
        }
        let lefts = texts.ids_of(pairs.map(|(left, _)| left));
        let rights = texts.ids_of(pairs.map(|(_, right)| right));
        for (i, (left, right)) in pairs.into_iter().take(chunk.len()).enumerate() {
            let normal = |parts: &[&str], id| normal(parts, id, start + i, kinds);
            let joined = self
                .next_joined(left, right, texts)
                .or_else(|| texts.id_of([left, right].concat().as_bytes()));
            self.merges.push(ListedMerge {
                left: normal(&[left], lefts[i])?,
                right: normal(&[right], rights[i])?,
                merged: normal(&[left, right], joined)?,
            });
            self.joints.insert(left, right);
        }
        Ok(())
    }

    /// The token that `left` and `right` make, if the merge before made it too or made the one before it.
    ///
    /// Lists are written token by token, for each all the ways to make it, so that nearly every search ends here.
    fn next_joined(&self, left: &str, right: &str, texts: &Texts) -> Option<u32> {
        let last = self.merges.last()?.merged;
        let is_joined = |id: &u32| texts.get(*id).and_then(|t| t.strip_prefix(left)) == Some(right);
        [last, last + 1].into_iter().find(is_joined)
    }
}

/// `id`, if there is one and it is a normal token.
fn normal(
    parts: &[&str],
    id: Option<u32>,
    index: usize,
    kinds: &[Kind],
) -> Result<u32, TokenizerError> {
    match id {
        Some(id) if kinds[id as usize] == Kind::Normal => Ok(id),
        Some(_) => Err(TokenizerError::special_piece(index, &parts.concat())),
        None => Err(TokenizerError::unknown_piece(index, &parts.concat())),
    }
}

/// The two pieces of "left right". A piece has no space inside, but one could be the first character.
fn halves(merge: &str) -> Option<(&str, &str)> {
    let first = merge.chars().next()?.len_utf8();
    let (left, right) = merge.split_at(first + merge[first..].find(' ')?);
    let right = &right[1..];
    (!right.is_empty()).then_some((left, right))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_is_cut_at_the_first_space_after_its_first_character() {
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
