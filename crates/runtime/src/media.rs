//! Images, audio and video in a conversation, and the encoders that turn them into soft tokens.
//!
//! An encoder is loaded when it is first needed, and can be unloaded to free its memory. Encoded media are kept by the caller, who
//! passes them with every prompt of the conversation.

mod audio;
mod encoder;
mod prompt;
mod vision;

use std::rc::Rc;

use rullama_gguf::Gguf;
use rullama_media::{
    audio::Audio,
    image::{Budget, Image},
};
use rullama_source::ByteSource;

pub use audio::{AudioEncoder, REACH};
pub use encoder::SoftTokens;
pub(crate) use prompt::spread;
pub use vision::{ImageSize, VisionEncoder};

use crate::{error::RuntimeError, model::Model};

/// A part of a message other than text.
#[derive(Debug, Clone)]
pub enum Medium {
    /// An image, and how large it is encoded.
    Image(Image, ImageSize),
    /// An audio clip.
    Audio(Audio),
    /// Frames of a video, in time order.
    Video(Vec<Frame>),
}

/// A video frame.
#[derive(Debug, Clone)]
pub struct Frame {
    /// When it is shown, in seconds from the start.
    pub seconds: f64,
    /// The image.
    pub image: Image,
}

/// Kind of a medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MediaKind {
    /// An image.
    Image,
    /// An audio clip.
    Audio,
    /// A video.
    Video,
}

/// A medium as soft tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodedMedia {
    /// Kind of the medium.
    pub kind: MediaKind,
    /// One piece, or one per video frame.
    pub pieces: Vec<Piece>,
}

/// A run of consecutive soft tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// Time of a video frame, in seconds.
    pub seconds: Option<u64>,
    /// The soft tokens.
    pub rows: Rc<SoftTokens>,
}

impl EncodedMedia {
    /// Soft tokens of the longest piece.
    pub fn longest(&self) -> usize {
        self.pieces.iter().map(|piece| piece.rows.count).max().unwrap_or(0)
    }

    /// Total number of soft tokens.
    pub fn tokens(&self) -> usize {
        self.pieces.iter().map(|piece| piece.rows.count).sum()
    }
}

/// The encoders of a model.
pub struct MediaEncoders {
    model: Model,
    projectors: Vec<Rc<dyn ByteSource>>,
    /// The files that may contain encoders, once they have been opened.
    files: Option<Vec<Rc<Gguf>>>,
    vision: Option<VisionEncoder>,
    audio: Option<AudioEncoder>,
    /// How many rows before it a row of audio attends to.
    pub reach: usize,
}

impl MediaEncoders {
    /// The encoders of these projector files, or else those inside the model's own file. Nothing is read yet.
    pub fn new(model: &Model, projectors: Vec<Rc<dyn ByteSource>>) -> Self {
        let model = model.clone();
        Self { model, projectors, files: None, vision: None, audio: None, reach: REACH }
    }

    /// Encodes a medium.
    ///
    /// # Errors
    /// If there is no encoder for it, the medium cannot be used, or the device fails.
    pub async fn encode(&mut self, medium: &Medium) -> Result<EncodedMedia, RuntimeError> {
        let (kind, pieces) = match medium {
            Medium::Image(image, size) => {
                let rows = self.vision().await?.encode(image, *size).await?;
                (MediaKind::Image, vec![Piece::new(None, rows)])
            }
            Medium::Audio(audio) => {
                let reach = self.reach;
                let rows = self.audio().await?.encode(audio, reach).await?;
                (MediaKind::Audio, vec![Piece::new(None, rows)])
            }
            Medium::Video(frames) => {
                let mut pieces = Vec::with_capacity(frames.len());
                let vision = self.vision().await?;
                for frame in frames {
                    let size = ImageSize::Fill(Budget::Tiny);
                    let rows = vision.encode(&frame.image, size).await?;
                    // Whole seconds; NaN becomes 0.
                    pieces.push(Piece::new(Some(frame.seconds.max(0.0) as u64), rows));
                }
                (MediaKind::Video, pieces)
            }
        };
        Ok(EncodedMedia { kind, pieces })
    }

    /// The vision encoder, loaded on first use.
    ///
    /// # Errors
    /// If there is none, or it cannot be loaded.
    pub async fn vision(&mut self) -> Result<&VisionEncoder, RuntimeError> {
        if self.vision.is_none() {
            let (device, width) = (self.model.device().clone(), self.model.config().width);
            for file in self.files().await? {
                self.vision = VisionEncoder::load(file, device.clone(), width).await?;
                if self.vision.is_some() {
                    break;
                }
            }
        }
        self.vision.as_ref().ok_or(RuntimeError::NoTower { verb: "read images" })
    }

    /// The audio encoder, loaded on first use.
    ///
    /// # Errors
    /// If there is none, or it cannot be loaded.
    pub async fn audio(&mut self) -> Result<&AudioEncoder, RuntimeError> {
        if self.audio.is_none() {
            let (device, width) = (self.model.device().clone(), self.model.config().width);
            for file in self.files().await? {
                self.audio = AudioEncoder::load(file, device.clone(), width).await?;
                if self.audio.is_some() {
                    break;
                }
            }
        }
        self.audio.as_ref().ok_or(RuntimeError::NoTower { verb: "read audio" })
    }

    /// Estimated GPU bytes of the encoders in a file, from its header.
    ///
    /// # Errors
    /// If an encoder is broken.
    pub fn memory_of_file(gguf: &Gguf) -> Result<u64, RuntimeError> {
        Ok(VisionEncoder::memory_of_file(gguf)? + AudioEncoder::memory_of_file(gguf)?)
    }

    /// Frees the encoders; they are loaded again when they are needed.
    pub fn unload(&mut self) {
        (self.vision, self.audio) = (None, None);
    }

    /// Bytes of the loaded encoders on the GPU.
    pub fn gpu_bytes(&self) -> u64 {
        let vision = self.vision.as_ref().map_or(0, VisionEncoder::gpu_bytes);
        vision + self.audio.as_ref().map_or(0, AudioEncoder::gpu_bytes)
    }

    /// The files that may contain encoders: projector files first, then the model's own file.
    async fn files(&mut self) -> Result<Vec<Rc<Gguf>>, RuntimeError> {
        if self.files.is_none() {
            let mut files = Vec::new();
            for source in &self.projectors {
                files.push(Rc::new(Gguf::open(source.clone()).await?));
            }
            files.push(self.model.0.gguf.clone());
            self.files = Some(files);
        }
        Ok(self.files.clone().unwrap_or_default())
    }
}

impl Piece {
    fn new(seconds: Option<u64>, rows: SoftTokens) -> Self {
        Self { seconds, rows: Rc::new(rows) }
    }
}
