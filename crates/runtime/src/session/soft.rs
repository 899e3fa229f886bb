//! Parts of images and audio among a session's tokens.
//!
//! Each soft token gets an id of its own beyond the vocabulary, made from its image's content: so a common beginning is common
//! only if its images are, and nothing else about a session changes. The rows are kept until the session ends, since caches may
//! have to be filled again.

use std::{collections::BTreeMap, ops::Range, rc::Rc};

use rullama_models::gemma4::{Config, Inputs, PassOutput};
use sha2::{Digest, Sha256};

use super::{Session, sees_blocks};
use crate::{adapters::Adapters, error::RuntimeError, media::SoftTokens, model::Inner};

/// Ids with this bit are no tokens.
const SOFT: u32 = 1 << 31;

/// An image or audio clip in a prompt.
#[derive(Debug, Clone)]
pub struct Media {
    /// The token that stands in the prompt, once for each soft token.
    pub placeholder: u32,
    /// The rows.
    pub rows: Rc<SoftTokens>,
    /// Whether its soft tokens see each other, as far as the model lets them: those of images do, those of audio clips do not.
    pub whole: bool,
}

/// The soft tokens of a session or a request, by the first id of each.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known(BTreeMap<u32, Media>);

impl Known {
    /// The ids of a medium, which is remembered.
    fn ids(&mut self, media: &Media) -> Range<u32> {
        let count = u32::try_from(media.rows.count).expect("a prompt's tokens fit 32 bits");
        let mut first = start(&media.rows);
        let end = loop {
            let Some(end) = first.checked_add(count) else {
                first = SOFT;
                continue;
            };
            // Another image may have claimed ids nearby.
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

    /// Takes a medium back under the ids it had; false if others have some of them.
    pub(super) fn put(&mut self, first: u32, media: Media) -> bool {
        let Ok(count) = u32::try_from(media.rows.count) else { return false };
        let Some(end) = first.checked_add(count) else { return false };
        let fits = is_soft(first) && count > 0 && self.overlapping(first..end).is_none();
        if fits {
            self.0.insert(first, media);
        }
        fits
    }

    /// The media among some tokens, each once, with the first id of each.
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

    /// The medium that an id belongs to, and which of its rows.
    fn find(&self, id: u32) -> Option<(&Media, Range<u32>, usize)> {
        let (first, media) = self.0.range(..=id).next_back()?;
        let ids = *first..end_of(*first, media);
        ids.contains(&id).then(|| (media, ids, (id - first) as usize))
    }

    /// A medium that has some of these ids, and its first id. Media do not overlap each other, so the last one that begins
    /// before the end decides.
    fn overlapping(&self, ids: Range<u32>) -> Option<(u32, &Media)> {
        let (first, media) = self.0.range(..ids.end).next_back()?;
        (end_of(*first, media) > ids.start).then_some((*first, media))
    }
}

/// One more than the last id of a medium, which was checked to be an id when the medium came.
fn end_of(first: u32, media: &Media) -> u32 {
    first + media.rows.count as u32
}

/// What tells the content of a medium from that of all others.
pub(crate) type MediaDigest = [u8; 32];

fn digest(rows: &SoftTokens) -> MediaDigest {
    let mut hash = Sha256::new();
    rows.values.iter().for_each(|value| hash.update(value.to_le_bytes()));
    hash.finalize().into()
}

/// The first id, from the content; far enough from the end for all rows.
fn start(rows: &SoftTokens) -> u32 {
    let digest = digest(rows);
    let word = u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]]);
    SOFT | (word >> 2)
}

pub(crate) fn is_soft(id: u32) -> bool {
    id & SOFT != 0
}

impl Known {
    /// The tokens of a prompt with images and audio in place of their placeholders, in order.
    ///
    /// # Errors
    /// If there are more or fewer placeholders than soft tokens, or the rows are of another model.
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
            let (model, numbers) = (config.width, medium.rows.values.len());
            if wanted.checked_mul(model) != Some(numbers) {
                return Err(RuntimeError::OtherTower { tower: numbers / wanted.max(1), model });
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

    /// For each medium that begins among some tokens, where it does and what is in it. Ids alone could be those of other content, though that is
    /// very unlikely.
    pub(crate) fn digests(&self, tokens: &[u32]) -> Vec<(usize, MediaDigest)> {
        let begins = |(position, id): (usize, &u32)| {
            let (media, _, row) = self.find(*id)?;
            (row == 0).then(|| (position, digest(&media.rows)))
        };
        tokens.iter().enumerate().filter_map(begins).collect()
    }

    /// The positions of the block that a position lies in, if it does.
    fn block(&self, config: &Config, tokens: &[u32], position: usize) -> Option<Range<usize>> {
        let id = *tokens.get(position)?;
        let (media, _, row) = self.find(id)?;
        let first = position.checked_sub(row)?;
        // A session may have gone back to the middle of an image.
        let end = (first + media.rows.count).min(tokens.len());
        (media.whole && sees_blocks(config)).then_some(first..end)
    }

    /// How many of the tokens from `first` on to take at once, at most `most`: blocks are not cut. A sliding-window cache has room for a block of
    /// `room` tokens.
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

    /// The rows that stand for some of the tokens, and where their blocks end, both for a pass of `size` tokens.
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

/// Refuses media with adapters that change the table of tokens: its rows are read from the file.
pub(crate) fn check_adapters(adapters: Option<&Adapters>) -> Result<(), RuntimeError> {
    match adapters.is_some_and(Adapters::change_lookup) {
        true => Err(RuntimeError::NotWithMedia {
            what: "be read with an adapter that changes the table of tokens",
        }),
        false => Ok(()),
    }
}

impl Session {
    /// The tokens of a prompt with images and audio in place of their placeholders, in order, ready for
    /// [`Session::set_tokens`].
    ///
    /// # Errors
    /// If there are more or fewer placeholders than soft tokens, or the rows are of another model.
    pub fn soften(&mut self, tokens: &[u32], media: &[Media]) -> Result<Vec<u32>, RuntimeError> {
        self.soft.soften(self.model.config(), tokens, media)
    }

    /// Whether an id is a token or a soft token we have rows for.
    pub(super) fn knows(&self, id: u32) -> bool {
        (id as usize) < self.model.config().vocabulary || self.soft.find(id).is_some()
    }

    /// Whether there are soft tokens in a range.
    pub(super) fn has_soft(&self, range: Range<usize>) -> bool {
        self.tokens[range].iter().any(|id| is_soft(*id))
    }

    /// Refuses tokens that would begin in the middle of an image or audio clip, or leave one before its end.
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

    /// How many of the next tokens to take at once, at most `most`: blocks are not cut.
    pub(super) fn uncut(&self, first: usize, most: usize) -> Result<usize, RuntimeError> {
        let config = self.model.config();
        let room = match self.ring < self.context {
            true => self.ring + 1 - config.window.min(self.ring),
            false => usize::MAX,
        };
        self.soft.uncut(config, &self.tokens, (first, most), room)
    }

    /// Writes the rows that stand for these tokens, and where their blocks end.
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
        prepared.write_numbers(Inputs::ROWS, &rows);
        prepared.write_ids(Inputs::BLOCKS, &blocks);
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
