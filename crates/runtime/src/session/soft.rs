//! Parts of pictures and sounds among a session's tokens.
//!
//! Each soft token gets an id of its own beyond the vocabulary, made from its picture's content: so a common beginning is common
//! only if its pictures are, and nothing else about a session changes. The rows are kept until the session ends, since caches may
//! have to be filled again.

use std::{collections::HashMap, ops::Range, rc::Rc};

use rullama_models::gemma4::{Inputs, Want};
use sha2::{Digest, Sha256};

use super::Session;
use crate::{adapters::Adapters, error::RuntimeError, model::Inner, tower::SoftTokens};

/// Ids with this bit are no tokens.
const SOFT: u32 = 1 << 31;

/// A picture or a sound in a prompt.
#[derive(Debug, Clone)]
pub struct Media {
    /// The token that stands in the prompt, once for each soft token.
    pub placeholder: u32,
    /// The rows.
    pub rows: Rc<SoftTokens>,
    /// Whether its soft tokens see each other, as far as the model lets them: those of pictures do, those of sounds do not.
    pub whole: bool,
}

/// The soft tokens a session has met, by the first id of each.
#[derive(Debug, Clone, Default)]
pub(super) struct Known(HashMap<u32, Media>);

impl Known {
    /// The ids of a medium, which is remembered.
    fn ids(&mut self, media: &Media) -> Range<u32> {
        let count = u32::try_from(media.rows.count).expect("a prompt's tokens fit 32 bits");
        let mut first = start(&media.rows);
        loop {
            // Another picture may have claimed ids nearby.
            let near = self.0.iter().find(|(other, known)| {
                let end = **other + known.rows.count as u32;
                first < end && **other < first + count
            });
            match near {
                None => break,
                Some((other, known)) if *other == first && known.rows == media.rows => break,
                Some((other, known)) => first = *other + known.rows.count as u32,
            }
        }
        self.0.insert(first, media.clone());
        first..first + count
    }

    /// The medium that an id belongs to, and which of its rows.
    fn find(&self, id: u32) -> Option<(&Media, Range<u32>, usize)> {
        self.0.iter().find_map(|(first, media)| {
            let ids = *first..*first + media.rows.count as u32;
            ids.contains(&id).then(|| (media, ids.clone(), (id - first) as usize))
        })
    }
}

/// The first id, from the content; far enough from the end for all rows.
fn start(rows: &SoftTokens) -> u32 {
    let mut hash = Sha256::new();
    rows.values.iter().for_each(|value| hash.update(value.to_le_bytes()));
    let digest: [u8; 32] = hash.finalize().into();
    let word = u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]]);
    SOFT | (word >> 2)
}

pub(super) fn is_soft(id: u32) -> bool {
    id & SOFT != 0
}

impl Session {
    /// The tokens of a prompt with pictures and sounds in place of their placeholders, in order, ready for
    /// [`Session::set_tokens`].
    ///
    /// # Errors
    /// If there are more or fewer placeholders than soft tokens.
    pub fn soften(&mut self, tokens: &[u32], media: &[Media]) -> Result<Vec<u32>, RuntimeError> {
        let mut softened = tokens.to_vec();
        let mut from = 0;
        for medium in media {
            let wanted = medium.rows.count;
            let place = |id: &u32| *id == medium.placeholder;
            let first =
                softened[from..].iter().position(place).map_or(tokens.len(), |at| from + at);
            let found = softened[first..].iter().take_while(|id| place(id)).count();
            if found < wanted {
                return Err(RuntimeError::Placeholders { found, wanted });
            }
            let ids = self.soft.ids(medium);
            softened[first..first + wanted].iter_mut().zip(ids).for_each(|(place, id)| *place = id);
            from = first + wanted;
        }
        Ok(softened)
    }

    /// Whether an id is a token or a soft token we have rows for.
    pub(super) fn knows(&self, id: u32) -> bool {
        (id as usize) < self.model.config().vocabulary || self.soft.find(id).is_some()
    }

    /// Whether there are soft tokens in a stretch.
    pub(super) fn has_soft(&self, range: Range<usize>) -> bool {
        self.tokens[range].iter().any(|id| is_soft(*id))
    }

    /// Whether the soft tokens of pictures see each other in this model: where there are no per-layer inputs.
    pub(super) fn sees_blocks(&self) -> bool {
        self.model.config().per_layer.is_none()
    }

    /// The positions of the block that a position lies in, if it does.
    fn block(&self, position: usize) -> Option<Range<usize>> {
        let id = *self.tokens.get(position)?;
        let (media, _, row) = self.soft.find(id)?;
        let first = position - row;
        (media.whole && self.sees_blocks()).then(|| first..first + media.rows.count)
    }

    /// How many of the next tokens to take at once, at most `most`: blocks are not cut.
    pub(super) fn uncut(&self, first: usize, most: usize) -> Result<usize, RuntimeError> {
        let end = (first + most).min(self.tokens.len());
        let Some(block) = self.block(end - 1).filter(|block| block.end > end) else {
            return Ok(end - first);
        };
        if block.start > first {
            return Ok(block.start - first);
        }
        let (tokens, room) =
            (block.len(), self.ring + 1 - self.model.config().window.min(self.ring));
        if tokens > room && self.ring < self.context {
            return Err(RuntimeError::BlockTooLong { tokens, most: room });
        }
        Ok(tokens)
    }

    /// Writes the rows that stand for these tokens, and where their blocks end.
    pub(super) async fn write_rows(
        &mut self,
        want: Want,
        size: usize,
        range: Range<usize>,
    ) -> Result<(), RuntimeError> {
        if self.adapters.as_ref().is_some_and(Adapters::change_lookup) {
            let what = "be read with an adapter that changes the table of tokens";
            return Err(RuntimeError::NotWithMedia { what });
        }
        let width = self.model.config().width;
        let mut rows = Vec::with_capacity(size * width);
        for id in &self.tokens[range.clone()] {
            match self.soft.find(*id) {
                Some((media, _, row)) => rows.extend(&media.rows.values[row * width..][..width]),
                None => rows.extend(self.model.0.embedding(*id).await?),
            }
        }
        rows.resize(size * width, 0.0);
        let end = |position: usize| self.block(position).map_or(0, |block| block.end as u32);
        let mut blocks: Vec<u32> = range.map(end).collect();
        blocks.resize(size, 0);
        let ready = self.ready_for(want, size, true).await?;
        ready.write_numbers(Inputs::ROWS, &rows);
        ready.write_ids(Inputs::BLOCKS, &blocks);
        Ok(())
    }
}

impl Inner {
    /// The row that stands for a token.
    async fn embedding(&self, id: u32) -> Result<Vec<f32>, RuntimeError> {
        let tensor = self.gguf.tensor("token_embd.weight");
        let tensor = tensor.expect("the catalogue was made from this file");
        let id = u64::from(id);
        let scale = (self.config.width as f64).sqrt() as f32;
        let row = self.gguf.rows_f32(tensor, id..id + 1).await?;
        Ok(row.into_iter().map(|x| x * scale).collect())
    }
}
