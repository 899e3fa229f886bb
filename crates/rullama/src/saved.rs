//! Saved conversations: a line of JSON with the messages, then the session's bytes, then the soft tokens of images and audio.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    rc::Rc,
};

use rullama_chat::Message;
use rullama_runtime::{
    SoftTokens,
    media::{EncodedMedia, MediaKind, Piece},
};
use serde::{Deserialize, Serialize};

use crate::error::{Error, SavedProblem};

const FORMAT: &str = "rullama conversation";
const VERSION: u32 = 2;
/// Largest header; no conversation that fits a context needs as much.
const MAX_HEADER: u64 = 64 << 20;

/// A conversation that can be saved to a file, with its KV cache.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedSession {
    /// Name of the model, for messages; the session's bytes contain its fingerprint.
    pub model: String,
    /// The system message.
    pub system: Option<String>,
    /// Whether the model thinks before it replies.
    pub thinking: bool,
    /// The messages.
    pub messages: Vec<Message>,
    /// The encoded media of the messages, in order.
    pub encoded: Vec<EncodedMedia>,
    /// Tokens and KV caches.
    pub session: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    version: u32,
    model: String,
    system: Option<String>,
    thinking: bool,
    messages: Vec<Message>,
    media: Vec<SavedMedium>,
    session_bytes: u64,
}

/// A medium whose soft tokens follow the session's bytes.
#[derive(Serialize, Deserialize)]
struct SavedMedium {
    /// The marker of its kind.
    kind: String,
    pieces: Vec<SavedPiece>,
}

#[derive(Serialize, Deserialize)]
struct SavedPiece {
    seconds: Option<u64>,
    rows: usize,
    width: usize,
}

impl SavedMedium {
    fn of(encoded: &EncodedMedia) -> Self {
        let piece = |piece: &Piece| SavedPiece {
            seconds: piece.seconds,
            rows: piece.rows.count,
            width: piece.rows.values.len() / piece.rows.count.max(1),
        };
        let pieces = encoded.pieces.iter().map(piece).collect();
        Self { kind: encoded.kind.marker().into(), pieces }
    }

    fn read(self, file: &mut impl Read) -> Result<EncodedMedia, SavedProblem> {
        let kinds = [MediaKind::Image, MediaKind::Audio, MediaKind::Video];
        let kind = kinds.into_iter().find(|kind| kind.marker() == self.kind);
        let kind = kind.ok_or(SavedProblem::Kind(self.kind))?;
        let pieces = self.pieces.into_iter().map(|SavedPiece { seconds, rows, width }| {
            if rows == 0 || width == 0 {
                return Err(SavedProblem::Empty);
            }
            let length = rows.checked_mul(width).and_then(|count| count.checked_mul(4));
            let length = length.ok_or(SavedProblem::Truncated)?;
            let mut bytes = Vec::new();
            file.take(length as u64).read_to_end(&mut bytes)?;
            if bytes.len() != length {
                return Err(SavedProblem::Truncated);
            }
            let values = bytes.as_chunks().0.iter().map(|four| f32::from_le_bytes(*four));
            let rows = SoftTokens { count: rows, values: values.collect() };
            Ok(Piece { seconds, rows: Rc::new(rows) })
        });
        Ok(EncodedMedia { kind, pieces: pieces.collect::<Result<_, _>>()? })
    }
}

impl SavedSession {
    /// Writes it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, out: &mut dyn Write) -> Result<(), Error> {
        let header = Header {
            format: FORMAT.into(),
            version: VERSION,
            model: self.model.clone(),
            system: self.system.clone(),
            thinking: self.thinking,
            messages: self.messages.clone(),
            media: self.encoded.iter().map(SavedMedium::of).collect(),
            session_bytes: self.session.len() as u64,
        };
        let mut write = || -> Result<(), SavedProblem> {
            out.write_all((serde_json::to_string(&header)? + "\n").as_bytes())?;
            out.write_all(&self.session)?;
            for piece in self.encoded.iter().flat_map(|encoded| &encoded.pieces) {
                piece.rows.values.iter().try_for_each(|x| out.write_all(&x.to_le_bytes()))?;
            }
            Ok(())
        };
        Ok(write()?)
    }

    /// Reads it; [`crate::Session::load`] checks that it fits a model.
    ///
    /// # Errors
    /// If it is damaged or not a saved conversation.
    pub fn read(file: impl BufRead) -> Result<Self, Error> {
        Ok(read(file)?)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, is damaged, or is not a saved conversation.
    pub fn read_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let file = BufReader::new(File::open(path).map_err(Error::file(path))?);
        read(file).map_err(|source| Error::SavedFile { path: path.into(), source })
    }
}

fn read(mut file: impl BufRead) -> Result<SavedSession, SavedProblem> {
    let mut line = Vec::new();
    file.by_ref().take(MAX_HEADER).read_until(b'\n', &mut line)?;
    let header: Header = serde_json::from_slice(&line)?;
    if header.format != FORMAT {
        return Err(SavedProblem::NotOurs);
    }
    if header.version != VERSION {
        return Err(SavedProblem::Version(header.version));
    }
    let mut session = Vec::new();
    file.by_ref().take(header.session_bytes).read_to_end(&mut session)?;
    if session.len() as u64 != header.session_bytes {
        return Err(SavedProblem::Truncated);
    }
    let Header { model, system, thinking, messages, media, .. } = header;
    let encoded =
        media.into_iter().map(|medium| medium.read(&mut file)).collect::<Result<_, _>>()?;
    Ok(SavedSession { model, system, thinking, messages, encoded, session })
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, sample::Index};

    use super::*;

    fn encoded(kind: MediaKind, times: &[Option<u64>]) -> EncodedMedia {
        let rows = SoftTokens { count: 2, values: vec![0.5, -1.0, 3.0, 0.0] };
        let piece =
            |seconds: &Option<u64>| Piece { seconds: *seconds, rows: Rc::new(rows.clone()) };
        EncodedMedia { kind, pieces: times.iter().map(piece).collect() }
    }

    fn saved() -> SavedSession {
        SavedSession {
            model: "gemma4".into(),
            system: Some("Be\nbrief.".into()),
            thinking: true,
            messages: vec![Message::new("user", "Hi\n"), Message::new("assistant", "Hello")],
            encoded: vec![
                encoded(MediaKind::Image, &[None]),
                encoded(MediaKind::Video, &[Some(0), Some(7)]),
            ],
            session: vec![0, 10, 255],
        }
    }

    fn bytes() -> Vec<u8> {
        let mut bytes = Vec::new();
        saved().write(&mut bytes).expect("written");
        bytes
    }

    #[test]
    fn a_written_conversation_is_read_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("chat");
        std::fs::write(&path, bytes()).expect("written");
        assert_eq!(SavedSession::read_file(&path).expect("read"), saved());
        assert_eq!(SavedSession::read(&bytes()[..]).expect("read"), saved());
    }

    #[test]
    fn other_and_broken_files_are_refused() {
        let whole = bytes();
        let check = |bytes: &[u8], part: &str| {
            let error = SavedSession::read(bytes).expect_err("refused").to_string();
            assert!(error.contains(part), "{error}");
        };
        check(&whole[..whole.len() - 1], "truncated");
        check(&whole[..40], "not a conversation");
        check(b"", "not a conversation");
        check(b"{}\n", "not a conversation");
        let text = String::from_utf8_lossy(&whole).into_owned();
        check(text.replace("\"version\":2", "\"version\":3").as_bytes(), "version 3");
        check(text.replace("rullama conv", "another conv").as_bytes(), "not a conversation");
        check(text.replacen("\"width\":2", "\"width\":0", 1).as_bytes(), "has no soft tokens");
        let endless = format!("\"rows\":{}", u64::MAX / 8);
        check(text.replacen("\"rows\":2", &endless, 1).as_bytes(), "truncated");
    }

    /// The bytes of a file, and the end of its first line.
    fn written() -> (Vec<u8>, usize) {
        let bytes = bytes();
        let end = bytes.iter().position(|byte| *byte == b'\n').expect("a line");
        (bytes, end)
    }

    proptest! {
        /// A file changed anywhere is refused with a message, or is a conversation whose media have all their rows.
        #[test]
        fn damaged_files_are_refused_or_consistent(
            at in any::<Index>(), bytes in prop::collection::vec(any::<u8>(), 0..9), cut in any::<Index>(),
        ) {
            let (mut file, _) = written();
            let at = at.index(file.len());
            file.splice(at..(at + bytes.len()).min(file.len()), bytes);
            file.truncate(cut.index(2 * file.len()));
            check_any(&file);
        }

        /// The same for a first line of valid JSON with wrong numbers.
        #[test]
        fn wrong_numbers_are_refused_or_consistent(
            key in prop::sample::select(vec!["rows", "width", "seconds", "session_bytes", "version"]),
            number in prop_oneof![0..9_u64, any::<u64>(), Just(u64::MAX), Just(1 << 62)],
        ) {
            let (file, end) = written();
            let line = std::str::from_utf8(&file[..end]).expect("text");
            let start = line.find(&format!("\"{key}\":")).expect("the key") + key.len() + 3;
            let rest = line[start..].trim_start_matches(|c: char| c.is_ascii_digit());
            let rest = rest.strip_prefix("null").unwrap_or(rest);
            let line = format!("{}{number}{rest}", &line[..start]);
            check_any(&[line.as_bytes(), &file[end..]].concat());
        }
    }

    fn check_any(file: &[u8]) {
        match read(file) {
            Ok(saved) => {
                for piece in saved.encoded.iter().flat_map(|encoded| &encoded.pieces) {
                    let SoftTokens { count, values } = &*piece.rows;
                    assert!(*count > 0 && values.len() >= *count && values.len() % count == 0);
                    assert!(values.len() * 4 <= file.len());
                }
                assert!(saved.session.len() <= file.len());
            }
            Err(error) => assert!(!format!("{error:#}").is_empty()),
        }
    }
}
