//! Images and audio of requests, encoded once.

use std::{collections::VecDeque, rc::Rc};

use rullama_api::{ApiError, Media, MediaKind};
use rullama_runtime::{
    EncodedMedia, MediaEncoders, RuntimeError,
    audio::Audio,
    image::Image,
    media::{ImageSize, Medium},
};
use sha2::{Digest as _, Sha256};

use crate::error::of_runtime;

/// Conversations send their images again with every message.
const KEPT: usize = 32;

/// The encoders of a model, and what they have encoded lately.
pub(crate) struct Encoded {
    encoders: MediaEncoders,
    known: VecDeque<([u8; 32], Rc<EncodedMedia>)>,
}

impl Encoded {
    pub(crate) fn new(encoders: MediaEncoders) -> Self {
        Self { encoders, known: VecDeque::new() }
    }

    pub(crate) fn gpu_bytes(&self) -> u64 {
        self.encoders.gpu_bytes()
    }

    /// Encodes all files of a request.
    pub(crate) async fn all(&mut self, media: &[Media]) -> Result<Vec<EncodedMedia>, ApiError> {
        let mut all = Vec::with_capacity(media.len());
        for file in media {
            all.push(self.one(file).await.map_err(|error| of_runtime(&error))?);
        }
        Ok(all)
    }

    async fn one(&mut self, file: &Media) -> Result<EncodedMedia, RuntimeError> {
        let key: [u8; 32] = Sha256::digest(&file.bytes).into();
        if let Some((_, known)) = self.known.iter().find(|(known, _)| *known == key) {
            return Ok(EncodedMedia::clone(known));
        }
        let medium = match file.kind {
            MediaKind::Image => Medium::Image(Image::decode(&file.bytes)?, ImageSize::default()),
            MediaKind::Audio => Medium::Audio(Audio::decode(&file.bytes)?),
        };
        let encoded = self.encoders.encode(&medium).await?;
        if self.known.len() >= KEPT {
            self.known.pop_front();
        }
        self.known.push_back((key, Rc::new(encoded.clone())));
        Ok(encoded)
    }
}
