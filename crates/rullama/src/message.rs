//! User messages: text with images, audio and videos.

use std::path::Path;

use rullama_chat::{Content, Message, Part};
use rullama_runtime::{
    audio::Audio,
    image::Image,
    media::{ImageSize, MediaKind, Medium},
};
use serde_json::{Map, Value};

use crate::{
    error::Error,
    media::{MediaFile, read_audio, read_image},
};

/// A user message: images, audio and videos, then text, the order models were trained on.
///
/// ```
/// use rullama::{Budget, ImageSize, Medium, Model, UserMessage, read_image};
///
/// // At most 70 soft tokens; `image_file` uses 280, which is slower and shows more detail.
/// let size = ImageSize::Fill(Budget::Tiny);
/// let image = Medium::Image(read_image("../../goldens/demo/picture-1.png")?, size);
/// let message = UserMessage::new("What is in the picture?").attach(image);
/// let reply = Model::open("demo")?.session()?.send(message)?;
/// assert_eq!(reply.text, "Six green triangles.");
/// # Ok::<(), rullama::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct UserMessage {
    text: String,
    pub(crate) media: Vec<Attachment>,
}

/// An image, audio clip or video of a message.
#[derive(Debug, Clone)]
pub(crate) struct Attachment {
    pub(crate) medium: Medium,
    /// Its file, if it was read from one.
    path: Option<String>,
}

impl UserMessage {
    /// A message with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), media: Vec::new() }
    }

    /// Adds a medium after the existing ones.
    #[must_use]
    pub fn attach(mut self, medium: Medium) -> Self {
        self.media.push(Attachment { medium, path: None });
        self
    }

    /// Adds an image.
    #[must_use]
    pub fn image(self, image: Image) -> Self {
        self.attach(Medium::Image(image, ImageSize::default()))
    }

    /// Adds an audio clip.
    #[must_use]
    pub fn audio(self, audio: Audio) -> Self {
        self.attach(Medium::Audio(audio))
    }

    /// Adds an image file: PNG, JPEG, WebP or GIF.
    ///
    /// # Errors
    /// If the file cannot be read or is of another format.
    pub fn image_file(self, path: impl AsRef<Path>) -> Result<Self, Error> {
        let medium = Medium::Image(read_image(&path)?, ImageSize::default());
        Ok(self.attach_named(medium, path.as_ref()))
    }

    /// Adds an audio file: WAV, MP3, FLAC or OGG Vorbis.
    ///
    /// ```
    /// use rullama::{Model, UserMessage};
    ///
    /// let message = UserMessage::new("Which digit do you hear?").audio_file("../../goldens/demo/digit-6-Michael.wav")?;
    /// assert_eq!(Model::open("demo")?.session()?.send(message)?.text, "6");
    /// # Ok::<(), rullama::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the file cannot be read or is of another format.
    pub fn audio_file(self, path: impl AsRef<Path>) -> Result<Self, Error> {
        let medium = Medium::Audio(read_audio(&path)?);
        Ok(self.attach_named(medium, path.as_ref()))
    }

    /// Adds a file of any kind, or a folder of video frames; `size` is the size at which images are encoded.
    ///
    /// # Errors
    /// If the file cannot be read or is of another format.
    pub fn file(self, file: &MediaFile, size: ImageSize) -> Result<Self, Error> {
        Ok(self.attach_named(file.read(size)?, &file.path))
    }

    fn attach_named(mut self, medium: Medium, path: &Path) -> Self {
        let path = Some(path.to_string_lossy().into_owned());
        self.media.push(Attachment { medium, path });
        self
    }

    /// The message for the chat template.
    pub(crate) fn message(&self) -> Message {
        if self.media.is_empty() {
            return Message::new("user", self.text.clone());
        }
        let text = Some(self.text.clone()).filter(|text| !text.trim().is_empty());
        let text =
            text.map(|text| Part { kind: "text".into(), text: Some(text), rest: Map::new() });
        let parts = self.media.iter().map(Attachment::part).chain(text).collect();
        Message { role: "user".into(), content: Content::Parts(parts), ..Message::default() }
    }
}

impl Attachment {
    fn kind(&self) -> MediaKind {
        match self.medium {
            Medium::Image(..) => MediaKind::Image,
            Medium::Audio(_) => MediaKind::Audio,
            Medium::Video(_) => MediaKind::Video,
        }
    }

    /// Its name in the parts of messages.
    fn kind_name(&self) -> &'static str {
        match self.kind() {
            MediaKind::Image => "image",
            MediaKind::Audio => "audio",
            MediaKind::Video => "video",
        }
    }

    /// Its name in error messages.
    pub(crate) fn name(&self) -> String {
        self.path.clone().unwrap_or_else(|| format!("the {}", self.kind_name()))
    }

    fn part(&self) -> Part {
        let path = self.path.iter().map(|path| ("path".to_owned(), Value::from(path.as_str())));
        Part { kind: self.kind_name().into(), text: None, rest: path.collect() }
    }
}

impl From<&str> for UserMessage {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for UserMessage {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}
