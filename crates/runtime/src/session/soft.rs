//! Soft tokens (images and audio) among a session's tokens.
//! Each soft token gets an id beyond the vocabulary, derived from a hash of its medium's content: prefixes match only if their media
//! match. The rows are kept until the session ends, since the KV caches may have to be recomputed.

use std::{collections::BTreeMap, ops::Range, rc::Rc};

use rullama_models::decoder::{Config, Inputs, PassOutput};
use sha2::{Digest, Sha256};

use super::{Session, sees_blocks};
use crate::{adapters::Adapters, error::RuntimeError, media::SoftTokens, model::Inner};

/// Flag bit of soft token ids.
const SOFT: u32 = 1 << 31;

/// An image or audio clip in a prompt.
#[derive(Debug, Clone)]
pub struct Media {
    /// The placeholder token in the prompt, once per soft token.
    pub placeholder: u32,
    /// The embedding rows.
    pub rows: Rc<SoftTokens>,
    /// Whether its soft tokens attend to each other bidirectionally, if the model supports it: images do, audio clips do not.
    pub whole: bool,
}

/// The soft tokens of a session or a request, by the first id of each.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known(BTreeMap<u32, Media>);

impl Known {
    /// Assigns ids to a medium and stores it.
    fn ids(&mut self, media: &Media) -> Range<u32> {
        let count = u32::try_from(media.rows.count).expect("a prompt's tokens fit 32 bits");
        let mut first = start(&media.rows);
        let end = loop {
            let Some(end) = first.checked_add(count) else {
                first = SOFT;
                continue;
            };
            // Another medium may have overlapping ids.
            match self.overlapping(first..end) {
                None => break end,
                Some((other, known)) if other == first && known.rows == media.rows => break end,
                Some((other, known)) => first = end_of(other, known),
            }
        };
        if count > 0 {
            self.0.insert(first, media.clone());
        }
        first..end
    }

    /// Restores a medium under its ids; false if they overlap with another medium's.
    pub(super) fn put(&mut self, first: u32, media: Media) -> bool {
        let Ok(count) = u32::try_from(media.rows.count) else { return false };
        let Some(end) = first.checked_add(count) else { return false };
        let fits = is_soft(first) && count > 0 && self.overlapping(first..end).is_none();
        if fits {
            self.0.insert(first, media);
        }
        fits
    }

    /// The distinct media among tokens, with their first ids.
    pub(super) fn among(&self, tokens: &[u32]) -> Vec<(u32, &Media)> {
        let mut found: Vec<(u32, &Media)> = Vec::new();
        for id in tokens.iter().filter(|id| is_soft(**id)) {
            if found
                .last()
                .is_some_and(|(first, media)| (*first..end_of(*first, media)).contains(id))
            {
                continue;
            }
            if let Some((media, ids, _)) = self.find(*id)
                && !found.iter().any(|(first, _)| *first == ids.start)
            {
                found.push((ids.start, media));
            }
        }
        found
    }

    /// The medium of an id, its id range and the row of the id.
    fn find(&self, id: u32) -> Option<(&Media, Range<u32>, usize)> {
        let (first, media) = self.0.range(..=id).next_back()?;
        let ids = *first..end_of(*first, media);
        ids.contains(&id).then(|| (media, ids, (id - first) as usize))
    }

    /// A medium that overlaps these ids, and its first id. Media do not overlap each other, so only the last one that starts before the
    /// end can.
    fn overlapping(&self, ids: Range<u32>) -> Option<(u32, &Media)> {
        let (first, media) = self.0.range(..ids.end).next_back()?;
        (end_of(*first, media) > ids.start).then_some((*first, media))
    }
}

/// Exclusive end of a medium's ids; checked for overflow when the medium was stored.
fn end_of(first: u32, media: &Media) -> u32 {
    first + media.rows.count as u32
}

/// SHA-256 of a medium's rows.
pub(crate) type MediaDigest = [u8; 32];

fn digest(rows: &SoftTokens) -> MediaDigest {
    let mut hash = Sha256::new();
    rows.values.iter().for_each(|value| hash.update(value.to_le_bytes()));
    hash.finalize().into()
}

/// The first id, derived from the content; far enough from `u32::MAX` for all rows.
fn start(rows: &SoftTokens) -> u32 {
    let digest = digest(rows);
    let word = u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]]);
    SOFT | (word >> 2)
}

pub(crate) fn is_soft(id: u32) -> bool {
    id & SOFT != 0
}

impl Known {
    /// Replaces the placeholders of a prompt by soft token ids, in order.
    ///
    /// # Errors
    /// If there are fewer placeholders than soft tokens, or the rows have another model's width.
    pub(crate) fn soften(
        &mut self,
        config: &Config,
        tokens: &[u32],
        media: &[Media],
    ) -> Result<Vec<u32>, RuntimeError> {
        let mut softened = tokens.to_vec();
        let mut from = 0;
        for medium in media {
            let wanted = medium.rows.count;
            let (model, elements) = (config.width, medium.rows.values.len());
            if wanted.checked_mul(model) != Some(elements) {
                return Err(RuntimeError::OtherTower { tower: elements / wanted.max(1), model });
            }
            let place = |id: &u32| *id == medium.placeholder;
            let first =
                softened[from..].iter().position(place).map_or(tokens.len(), |at| from + at);
            let found = softened[first..].iter().take_while(|id| place(id)).count();
            if found < wanted {
                return Err(RuntimeError::Placeholders { found, wanted });
            }
            let ids = self.ids(medium);
            softened[first..first + wanted].iter_mut().zip(ids).for_each(|(place, id)| *place = id);
            from = first + wanted;
        }
        Ok(softened)
    }

    /// Position and digest of each medium that starts among these tokens. Ids alone could collide, though that is very unlikely.
    pub(crate) fn digests(&self, tokens: &[u32]) -> Vec<(usize, MediaDigest)> {
        let begins = |(position, id): (usize, &u32)| {
            let (media, _, row) = self.find(*id)?;
            (row == 0).then(|| (position, digest(&media.rows)))
        };
        tokens.iter().enumerate().filter_map(begins).collect()
    }

    /// The block of positions that contains this position, if there is one.
    fn block(&self, config: &Config, tokens: &[u32], position: usize) -> Option<Range<usize>> {
        let id = *tokens.get(position)?;
        let (media, _, row) = self.find(id)?;
        let first = position.checked_sub(row)?;
        // A session may have been truncated inside an image.
        let end = (first + media.rows.count).min(tokens.len());
        (media.whole && sees_blocks(config)).then_some(first..end)
    }

    /// Number of tokens for the next pass, starting at `first`, at most `most`: blocks are not split. The sliding-window cache holds a
    /// block of `room` tokens.
    ///
    /// # Errors
    /// If a block is longer than that.
    pub(crate) fn uncut(
        &self,
        config: &Config,
        tokens: &[u32],
        (first, most): (usize, usize),
        room: usize,
    ) -> Result<usize, RuntimeError> {
        let end = (first + most).min(tokens.len());
        let block = self.block(config, tokens, end - 1).filter(|block| block.end > end);
        let Some(block) = block else { return Ok(end - first) };
        if block.start > first {
            return Ok(block.start - first);
        }
        if block.len() > room {
            return Err(RuntimeError::BlockTooLong { tokens: block.len(), most: room });
        }
        Ok(block.len())
    }

    /// Embedding rows and block ends of a range of tokens, padded to a pass of `size` tokens.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) async fn rows(
        &self,
        model: &Inner,
        tokens: &[u32],
        range: Range<usize>,
        size: usize,
    ) -> Result<(Vec<f32>, Vec<u32>), RuntimeError> {
        let width = model.config.width;
        let mut rows = Vec::with_capacity(size * width);
        for id in &tokens[range.clone()] {
            match self.find(*id) {
                Some((media, _, row)) => rows.extend(&media.rows.values[row * width..][..width]),
                None => rows.extend(model.embedding(*id).await?),
            }
        }
        rows.resize(size * width, 0.0);
        let end = |position: usize| {
            self.block(&model.config, tokens, position).map_or(0, |block| block.end as u32)
        };
        let mut blocks: Vec<u32> = range.map(end).collect();
        blocks.resize(size, 0);
        Ok((rows, blocks))
    }
}

/// Refuses media with adapters that change the token embeddings: with media, embeddings are read from the file.
pub(crate) fn check_adapters(adapters: Option<&Adapters>) -> Result<(), RuntimeError> {
    match adapters.is_some_and(Adapters::change_lookup) {
        true => Err(RuntimeError::NotWithMedia {
            what: "be used with an adapter that changes the token embeddings",
        }),
        false => Ok(()),
    }
}

impl Session {
    /// Replaces the placeholders of a prompt by soft token ids, in order, for [`Session::set_tokens`].
    ///
    /// # Errors
    /// If there are fewer placeholders than soft tokens, or the rows have another model's width.
    pub fn soften(&mut self, tokens: &[u32], media: &[Media]) -> Result<Vec<u32>, RuntimeError> {
        self.soft.soften(self.model.config(), tokens, media)
    }

    /// Whether an id is a token of the vocabulary or a known soft token.
    pub(super) fn knows(&self, id: u32) -> bool {
        (id as usize) < self.model.config().vocabulary || self.soft.find(id).is_some()
    }

    /// Whether a range contains soft tokens.
    pub(super) fn has_soft(&self, range: Range<usize>) -> bool {
        self.tokens[range].iter().any(|id| is_soft(*id))
    }

    /// Refuses tokens that start in the middle of an image or audio clip, or leave one incomplete.
    pub(super) fn check_order(&self, tokens: &[u32]) -> Result<(), RuntimeError> {
        let mut before = self.tokens.last().copied();
        for (position, id) in (self.tokens.len()..).zip(tokens) {
            let expected = before.and_then(|before| {
                let (_, ids, _) = self.soft.find(before)?;
                (before + 1 < ids.end).then_some(before + 1)
            });
            let begins = self.soft.find(*id).is_none_or(|(_, _, row)| row == 0);
            if expected.map_or(!begins, |expected| expected != *id) {
                return Err(RuntimeError::SoftTokenOrder { position });
            }
            before = Some(*id);
        }
        Ok(())
    }

    /// Number of tokens for the next pass, at most `most`: blocks are not split.
    pub(super) fn uncut(&self, first: usize, most: usize) -> Result<usize, RuntimeError> {
        let config = self.model.config();
        let room = match self.ring < self.context {
            true => self.ring + 1 - config.window.min(self.ring),
            false => usize::MAX,
        };
        self.soft.uncut(config, &self.tokens, (first, most), room)
    }

    /// Writes embedding rows and block ends of these tokens.
    pub(super) async fn write_rows(
        &mut self,
        output: PassOutput,
        size: usize,
        range: Range<usize>,
    ) -> Result<(), RuntimeError> {
        check_adapters(self.adapters.as_ref())?;
        let (rows, blocks) =
            self.soft.rows(&self.model.0, &self.tokens, range.clone(), size).await?;
        let prepared = self.prepared_for(output, size, true).await?;
        prepared.write_f32(Inputs::ROWS, &rows);
        prepared.write_ids(Inputs::BLOCKS, &blocks);
        Ok(())
    }
}

impl Inner {
    /// The scaled embedding of a token, read from the file.
    async fn embedding(&self, id: u32) -> Result<Vec<f32>, RuntimeError> {
        let tensor = self.gguf.tensor("token_embd.weight");
        let tensor = tensor.expect("the catalogue was made from this file");
        let id = u64::from(id);
        let scale = self.config.embedding_scale();
        let row = self.gguf.rows_f32(tensor, id..id + 1).await?;
        Ok(row.into_iter().map(|x| x * scale).collect())
    }
}
