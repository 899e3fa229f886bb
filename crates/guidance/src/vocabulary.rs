//! A model's vocabulary as bytes, and the trie that masks are computed from.

use std::{cell::OnceCell, sync::Arc};

use llguidance::{
    Matcher as Inner, ParserFactory,
    api::TopLevelGrammar,
    earley::SlicedBiasComputer,
    toktrie::{ApproximateTokEnv, InferenceCapabilities, TokEnv, TokRxInfo, TokTrie},
};

use crate::{Format, GuidanceError, Matcher};

/// The token trie counts its nodes in 22 bits.
const MAX_BYTES: usize = 1 << 22;
/// The first byte of a token that is no text.
const MARKER: u8 = TokTrie::SPECIAL_TOKEN_MARKER;

/// The bytes of all tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenTexts {
    /// What each token adds to a reply; empty if it may not be part of one. [`Self::marker`] makes that of a control token.
    pub texts: Vec<Vec<u8>>,
    /// The tokens that end a reply.
    pub ends: Vec<u32>,
}

impl TokenTexts {
    /// A control token such as `<|tool_call>`: it is no text, and only grammars that name it allow it.
    pub fn marker(name: &[u8]) -> Vec<u8> {
        [&[MARKER], name].concat()
    }

    /// One block of bytes, for [`Self::unpack`]: counts of tokens and ends, ends, lengths, texts. Numbers are little-endian `u32`s.
    pub fn pack(&self) -> Vec<u8> {
        let counts = [self.texts.len() as u32, self.ends.len() as u32];
        let lengths = self.texts.iter().map(|text| text.len() as u32);
        let numbers = counts.into_iter().chain(self.ends.iter().copied()).chain(lengths);
        let mut packed: Vec<u8> = numbers.flat_map(u32::to_le_bytes).collect();
        packed.extend(self.texts.iter().flatten());
        packed
    }

    /// Reads what [`Self::pack`] wrote.
    ///
    /// # Errors
    /// [`GuidanceError::Packed`] for anything else.
    pub fn unpack(packed: &[u8]) -> Result<Self, GuidanceError> {
        let mut rest = packed;
        let count = number(&mut rest)?;
        let end_count = number(&mut rest)?;
        let ends = numbers(&mut rest, end_count)?;
        let lengths = numbers(&mut rest, count)?;
        let text = |length: u32| Ok(take(&mut rest, length as usize)?.to_vec());
        let texts = lengths.into_iter().map(text).collect::<Result<Vec<_>, GuidanceError>>()?;
        if rest.is_empty() { Ok(Self { texts, ends }) } else { Err(GuidanceError::Packed) }
    }
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], GuidanceError> {
    let (taken, left) = rest.split_at_checked(length).ok_or(GuidanceError::Packed)?;
    *rest = left;
    Ok(taken)
}

fn number(rest: &mut &[u8]) -> Result<usize, GuidanceError> {
    Ok(numbers(rest, 1)?[0] as usize)
}

fn numbers(rest: &mut &[u8], count: usize) -> Result<Vec<u32>, GuidanceError> {
    let bytes = take(rest, count.checked_mul(4).ok_or(GuidanceError::Packed)?)?;
    let (fours, _) = bytes.as_chunks::<4>();
    Ok(fours.iter().map(|four| u32::from_le_bytes(*four)).collect())
}

/// The vocabulary of a model, prepared for formats of replies.
pub struct Vocabulary {
    env: TokEnv,
    /// For JSON: masks of common strings are precomputed, which takes time and memory.
    sliced: OnceCell<ParserFactory>,
    /// For anything else.
    plain: OnceCell<ParserFactory>,
}

impl Vocabulary {
    /// Prepares a vocabulary.
    ///
    /// # Errors
    /// If no token ends a reply, or the texts are too long together.
    pub fn new(TokenTexts { texts, ends }: &TokenTexts) -> Result<Self, GuidanceError> {
        let first = *ends.first().ok_or(GuidanceError::NoEnd)?;
        if ends.iter().any(|end| *end as usize >= texts.len()) {
            return Err(GuidanceError::Packed);
        }
        let mut texts = texts.clone();
        // The library expects at least one control token.
        for end in ends {
            let text = &mut texts[*end as usize];
            if text.first() != Some(&MARKER) {
                *text = TokenTexts::marker(format!("<end {end}>").as_bytes());
            }
        }
        let bytes = texts.iter().map(Vec::len).sum();
        if bytes >= MAX_BYTES {
            return Err(GuidanceError::Vocabulary { bytes });
        }
        let trie = TokTrie::from(&TokRxInfo::new(texts.len() as u32, first), &texts);
        let env: TokEnv = Arc::new(ApproximateTokEnv::new(trie.with_eos_tokens(ends)));
        Ok(Self { env, sliced: OnceCell::new(), plain: OnceCell::new() })
    }

    /// Whether there is a control token of this name.
    pub fn has_marker(&self, name: &str) -> bool {
        self.env.tok_trie().get_special_token(name).is_some()
    }

    /// A constraint for replies of a format.
    ///
    /// # Errors
    /// If the format is invalid or not supported.
    pub fn compile(&self, format: &Format) -> Result<Matcher, GuidanceError> {
        let grammar = format.grammar(|name| self.has_marker(name))?;
        let refused = |why: String| format.refused(why);
        let matcher = Inner::new(self.factory(format.is_json(), &refused)?.create_parser(grammar));
        match matcher.get_error() {
            Some(why) => Err(refused(why)),
            None => Ok(Matcher::new(matcher)),
        }
    }

    fn factory(
        &self,
        is_json: bool,
        refused: &dyn Fn(String) -> GuidanceError,
    ) -> Result<&ParserFactory, GuidanceError> {
        let (cell, slices) = if is_json {
            (&self.sliced, SlicedBiasComputer::general_slices())
        } else {
            (&self.plain, Vec::new())
        };
        if let Some(factory) = cell.get() {
            return Ok(factory);
        }
        let caps = InferenceCapabilities::default();
        let mut factory = ParserFactory::new(&self.env, caps, &slices)
            .map_err(|error| refused(error.to_string()))?;
        factory.quiet().limits_mut().verbose_errors = false;
        Ok(cell.get_or_init(|| factory))
    }
}

impl std::fmt::Debug for Vocabulary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Vocabulary")
    }
}

/// Grammars of a request: the first is the start.
pub(crate) fn top_level(grammars: Vec<llguidance::api::GrammarWithLexer>) -> TopLevelGrammar {
    TopLevelGrammar { grammars, max_tokens: None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn packed_texts_are_unpacked(
            texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..5), 0..9),
            ends in prop::collection::vec(any::<u32>(), 0..3),
            cut in any::<prop::sample::Index>(),
        ) {
            let texts = TokenTexts { texts, ends };
            let packed = texts.pack();
            prop_assert_eq!(TokenTexts::unpack(&packed).expect("it was packed"), texts);
            let cut = cut.index(packed.len());
            prop_assert!(TokenTexts::unpack(&packed[..cut]).is_err());
            prop_assert!(TokenTexts::unpack(&[&packed[..], &[0]].concat()).is_err());
        }
    }

    #[test]
    fn vocabularies_that_cannot_be_used_are_refused() {
        let new = |texts: &[&[u8]], ends: &[u32]| {
            let texts = texts.iter().map(|text| text.to_vec()).collect();
            Vocabulary::new(&TokenTexts { texts, ends: ends.to_vec() })
        };
        assert!(matches!(new(&[b"a"], &[]), Err(GuidanceError::NoEnd)));
        assert!(matches!(new(&[b"a"], &[1]), Err(GuidanceError::Packed)));
        let long = vec![b'a'; MAX_BYTES];
        assert!(matches!(new(&[b"", &long], &[0]), Err(GuidanceError::Vocabulary { .. })));
    }
}
