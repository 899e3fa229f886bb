//! Images, audio and videos as files.

mod frames;

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use rullama_runtime::{
    RuntimeError,
    audio::Audio,
    image::Image,
    media::{ImageSize, MediaKind, Medium},
};

use crate::error::Error;

/// Largest image or audio file that is read.
const MAX_BYTES: u64 = 1 << 30;
/// Extensions of image and audio files.
const IMAGES: [&str; 5] = ["png", "jpg", "jpeg", "webp", "gif"];
const AUDIO: [&str; 5] = ["wav", "mp3", "flac", "ogg", "oga"];

/// A file with an image or audio clip, or a folder with the frames of a video.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaFile {
    /// Its kind.
    pub kind: MediaKind,
    /// Its path.
    pub path: PathBuf,
}

impl MediaFile {
    /// A file of the kind that its extension says; `None` if that is not an image or audio format.
    ///
    /// ```
    /// use rullama::{MediaFile, MediaKind};
    ///
    /// assert_eq!(MediaFile::guess("cat.jpeg").map(|file| file.kind), Some(MediaKind::Image));
    /// assert_eq!(MediaFile::guess("speech.flac").map(|file| file.kind), Some(MediaKind::Audio));
    /// assert!(MediaFile::guess("notes.txt").is_none());
    /// ```
    pub fn guess(path: impl Into<PathBuf>) -> Option<Self> {
        let path = path.into();
        Some(Self { kind: kind_of(&path)?, path })
    }

    /// Reads and decodes it; `size` is the size at which an image is encoded.
    ///
    /// # Errors
    /// If the file cannot be read, is too large or is of another format.
    pub fn read(&self, size: ImageSize) -> Result<Medium, Error> {
        Ok(match self.kind {
            MediaKind::Image => Medium::Image(read_image(&self.path)?, size),
            MediaKind::Audio => Medium::Audio(read_audio(&self.path)?),
            MediaKind::Video => Medium::Video(frames::frames(&self.path)?),
        })
    }

    /// Its name in messages.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }
}

/// Reads an image: PNG, JPEG, WebP or GIF.
///
/// # Errors
/// If the file cannot be read, is too large or is of another format.
pub fn read_image(path: impl AsRef<Path>) -> Result<Image, Error> {
    let path = path.as_ref();
    Image::decode(&bytes(path)?).map_err(|error| unusable(path, error.into()))
}

/// Reads an audio clip: WAV, MP3, FLAC or OGG Vorbis.
///
/// # Errors
/// If the file cannot be read, is too large or is of another format.
pub fn read_audio(path: impl AsRef<Path>) -> Result<Audio, Error> {
    let path = path.as_ref();
    Audio::decode(&bytes(path)?).map_err(|error| unusable(path, error.into()))
}

fn unusable(path: &Path, source: RuntimeError) -> Error {
    Error::Media { name: path.display().to_string(), source: source.into() }
}

/// The kind of a file by its extension.
fn kind_of(path: &Path) -> Option<MediaKind> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    let among = |known: &[&str]| known.contains(&extension.as_str());
    match () {
        () if among(&IMAGES) => Some(MediaKind::Image),
        () if among(&AUDIO) => Some(MediaKind::Audio),
        () => None,
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, Error> {
    let failed = |error| Error::file(path)(error);
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        return Err(Error::Folder { path: path.into() });
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Error::FileTooLarge { path: path.into() });
    }
    Ok(bytes)
}
