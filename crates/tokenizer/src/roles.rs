//! Tokens with a role: beginning of a prompt, end of generation, suppressed.

use crate::{TokenizerError, Vocab, texts::Texts};

/// Ids by role.
#[derive(Debug)]
pub(crate) struct Roles {
    pub(crate) bos: Option<u32>,
    pub(crate) eos: Option<u32>,
    pub(crate) eot: Option<u32>,
    pub(crate) unknown: Option<u32>,
    pub(crate) padding: Option<u32>,
    pub(crate) mask: Option<u32>,
    /// Ids that end generation, ascending.
    pub(crate) ends: Vec<u32>,
    /// Ids suppressed by the file, ascending.
    pub(crate) suppressed: Vec<u32>,
}

/// Tokens that always end generation: end of text, end of turn, tool response.
const ENDS: [&str; 3] = ["<eos>", "<turn|>", "<|tool_response>"];

/// End-of-generation tokens of other families, if the file does not type them as normal.
const SPECIAL_ENDS: [&str; 8] = [
    "<end_of_turn>",
    "<start_function_response>",
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|end|>",
];

/// End-of-turn tokens, for files that do not name one.
const TURN_ENDS: [&str; 4] = ["<turn|>", "<end_of_turn>", "<|im_end|>", "<|eot_id|>"];

impl Roles {
    pub(crate) fn new(vocab: &Vocab<'_>, texts: &Texts) -> Result<Self, TokenizerError> {
        let tokens = texts.len();
        let check = |key, id: i64| match u32::try_from(id) {
            Ok(id) if id < tokens => Ok(id),
            _ => Err(TokenizerError::IdPastVocabulary { key, id, tokens }),
        };
        let by_text = |text: &str| texts.id_of(text.as_bytes());
        let role = |key, id: Option<u32>, text| match id {
            Some(id) => check(key, id.into()).map(Some),
            None => Ok(by_text(text)),
        };
        let list = |key, ids: &[i64]| {
            ids.iter().map(|&id| check(key, id)).collect::<Result<Vec<_>, _>>().map(ascending)
        };
        let eos = role("eos_token_id", vocab.eos, "<eos>")?;
        let special = |id: &u32| vocab.types.get(*id as usize).is_some_and(|kind| *kind != 1);
        let found_eot = || TURN_ENDS.into_iter().find_map(|text| by_text(text).filter(special));
        let eot = role("eot_token_id", vocab.eot, "<turn|>")?.or_else(found_eot);
        let mut ends = list("eos_token_ids", &vocab.eos_ids)?;
        ends.extend(ENDS.into_iter().filter_map(by_text).chain(eos).chain(eot));
        ends.extend(SPECIAL_ENDS.into_iter().filter_map(by_text).filter(special));
        Ok(Self {
            bos: role("bos_token_id", vocab.bos, "<bos>")?,
            eos,
            eot,
            unknown: role("unknown_token_id", vocab.unknown, "<unk>")?,
            padding: role("padding_token_id", vocab.padding, "<pad>")?,
            mask: role("mask_token_id", vocab.mask, "<mask>")?,
            ends: ascending(ends),
            suppressed: list("suppress_tokens", &vocab.suppress)?,
        })
    }

    /// Whether `id` ends generation.
    pub(crate) fn is_end(&self, id: u32) -> bool {
        self.ends.binary_search(&id).is_ok()
    }
}

fn ascending(mut ids: Vec<u32>) -> Vec<u32> {
    ids.sort_unstable();
    ids.dedup();
    ids
}
