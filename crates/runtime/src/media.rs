//! Senses: the towers that go with a model, and what they make of the pictures and sounds of a conversation.
//!
//! Nothing of a tower is read before something is to be seen or heard, and a tower can be forgotten to have its memory back.
//! What was perceived is kept by the caller, who gives it to every prompt of the conversation.

mod prompt;

use std::rc::Rc;

use rullama_gguf::Gguf;
use rullama_media::{
    picture::{Budget, Picture},
    sound::Sound,
};
use rullama_source::ByteSource;

pub(crate) use prompt::spread;

use crate::{
    error::RuntimeError,
    hearing::{Hearing, REACH},
    model::Model,
    tower::SoftTokens,
    vision::{Sight, Vision},
};

/// Something in a message beside its text.
#[derive(Debug, Clone)]
pub enum Medium {
    /// A picture, and how large the tower is to see it.
    Picture(Picture, Sight),
    /// A sound.
    Sound(Sound),
    /// Pictures of a video, oldest first.
    Video(Vec<Frame>),
}

/// A picture of a video.
#[derive(Debug, Clone)]
pub struct Frame {
    /// When it is shown, in seconds from the start.
    pub seconds: f64,
    /// The picture.
    pub picture: Picture,
}

/// What kind of thing was perceived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A picture.
    Picture,
    /// A sound.
    Sound,
    /// A video.
    Video,
}

/// What the towers made of a medium.
#[derive(Debug, Clone, PartialEq)]
pub struct Perceived {
    /// What it was.
    pub kind: Kind,
    /// One piece, or one for each picture of a video.
    pub pieces: Vec<Piece>,
}

/// Soft tokens that stand together.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// When a video shows it.
    pub seconds: Option<u64>,
    /// The soft tokens.
    pub rows: Rc<SoftTokens>,
}

impl Perceived {
    /// The most soft tokens that stand together.
    pub fn longest(&self) -> usize {
        self.pieces.iter().map(|piece| piece.rows.count).max().unwrap_or(0)
    }

    /// All soft tokens.
    pub fn tokens(&self) -> usize {
        self.pieces.iter().map(|piece| piece.rows.count).sum()
    }
}

/// The towers of a model.
pub struct Senses {
    model: Model,
    projectors: Vec<Rc<dyn ByteSource>>,
    /// The files that may have towers, once they have been looked at.
    files: Option<Vec<Rc<Gguf>>>,
    eyes: Option<Vision>,
    ears: Option<Hearing>,
    /// How many rows before it a row of a sound hears.
    pub reach: usize,
}

impl Senses {
    /// The towers of these projector files, or else those inside the model's own file. Nothing is read yet.
    pub fn new(model: &Model, projectors: Vec<Rc<dyn ByteSource>>) -> Self {
        let model = model.clone();
        Self { model, projectors, files: None, eyes: None, ears: None, reach: REACH }
    }

    /// What the towers make of a medium.
    ///
    /// # Errors
    /// If there is no tower for it, the medium cannot be used, or the device fails.
    pub async fn perceive(&mut self, medium: &Medium) -> Result<Perceived, RuntimeError> {
        let (kind, pieces) = match medium {
            Medium::Picture(picture, sight) => {
                (Kind::Picture, vec![Piece::new(None, self.see(picture, *sight).await?)])
            }
            Medium::Sound(sound) => (Kind::Sound, vec![Piece::new(None, self.hear(sound).await?)]),
            Medium::Video(frames) => {
                let mut pieces = Vec::with_capacity(frames.len());
                for frame in frames {
                    let rows = self.see(&frame.picture, Sight::Fill(Budget::Tiny)).await?;
                    // Whole seconds; a time that is no number is the start.
                    pieces.push(Piece::new(Some(frame.seconds.max(0.0) as u64), rows));
                }
                (Kind::Video, pieces)
            }
        };
        Ok(Perceived { kind, pieces })
    }

    /// The eyes, loaded if they are not.
    ///
    /// # Errors
    /// If there are none, or they cannot be loaded.
    pub async fn eyes(&mut self) -> Result<&Vision, RuntimeError> {
        if self.eyes.is_none() {
            let (device, width) = (self.model.device().clone(), self.model.config().width);
            for file in self.files().await? {
                self.eyes = Vision::load(file, device.clone(), width).await?;
                if self.eyes.is_some() {
                    break;
                }
            }
        }
        self.eyes.as_ref().ok_or(RuntimeError::NoTower { verb: "read images" })
    }

    /// The ears, loaded if they are not.
    ///
    /// # Errors
    /// If there are none, or they cannot be loaded.
    pub async fn ears(&mut self) -> Result<&Hearing, RuntimeError> {
        if self.ears.is_none() {
            let (device, width) = (self.model.device().clone(), self.model.config().width);
            for file in self.files().await? {
                self.ears = Hearing::load(file, device.clone(), width).await?;
                if self.ears.is_some() {
                    break;
                }
            }
        }
        self.ears.as_ref().ok_or(RuntimeError::NoTower { verb: "read audio" })
    }

    /// Bytes on a GPU that the towers in a file will take, as its header tells.
    ///
    /// # Errors
    /// If a tower is broken.
    pub fn memory_of_file(gguf: &Gguf) -> Result<u64, RuntimeError> {
        Ok(Vision::memory_of_file(gguf)? + Hearing::memory_of_file(gguf)?)
    }

    /// Frees the towers; they are loaded again when something is to be perceived.
    pub fn forget(&mut self) {
        (self.eyes, self.ears) = (None, None);
    }

    /// Bytes of the loaded towers on the GPU.
    pub fn gpu_bytes(&self) -> u64 {
        let eyes = self.eyes.as_ref().map_or(0, Vision::gpu_bytes);
        eyes + self.ears.as_ref().map_or(0, Hearing::gpu_bytes)
    }

    async fn see(&mut self, picture: &Picture, sight: Sight) -> Result<SoftTokens, RuntimeError> {
        self.eyes().await?.see(picture, sight).await
    }

    async fn hear(&mut self, sound: &Sound) -> Result<SoftTokens, RuntimeError> {
        let reach = self.reach;
        self.ears().await?.hear(sound, reach).await
    }

    /// Where towers may be: projector files first, then the model's own file.
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
