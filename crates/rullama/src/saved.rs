//! Kept conversations: a line of JSON with the messages, then the session's own bytes, then the rows of images and audio.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    rc::Rc,
};

use anyhow::{Context, Result, bail, ensure};
use rullama_chat::Message;
use rullama_runtime::{
    SoftTokens,
    media::{EncodedMedia, MediaKind, Piece},
};
use serde::{Deserialize, Serialize};

use crate::output_file::OutputFile;

const FORMAT: &str = "rullama conversation";
const VERSION: u32 = 2;
/// No conversation that fits a context comes near this.
const LONGEST_HEADER: u64 = 64 << 20;
const CUT: &str = "the file is truncated";

/// A conversation that can be kept in a file.
#[derive(Debug, PartialEq)]
pub(super) struct Saved {
    /// Name of the model, for people; the session's bytes know which one it was.
    pub(super) model: String,
    pub(super) system: Option<String>,
    pub(super) thinking: bool,
    pub(super) messages: Vec<Message>,
    /// What was encoded of the messages' media, in order.
    pub(super) encoded: Vec<EncodedMedia>,
    /// Tokens and caches.
    pub(super) session: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    version: u32,
    model: String,
    system: Option<String>,
    thinking: bool,
    messages: Vec<Message>,
    media: Vec<KeptMedium>,
    session_bytes: u64,
}

/// A medium whose rows follow those of the session.
#[derive(Serialize, Deserialize)]
struct KeptMedium {
    /// The marker of its kind.
    kind: String,
    pieces: Vec<KeptPiece>,
}

#[derive(Serialize, Deserialize)]
struct KeptPiece {
    seconds: Option<u64>,
    rows: usize,
    width: usize,
}

impl KeptMedium {
    fn of(encoded: &EncodedMedia) -> Self {
        let piece = |piece: &Piece| KeptPiece {
            seconds: piece.seconds,
            rows: piece.rows.count,
            width: piece.rows.values.len() / piece.rows.count.max(1),
        };
        let pieces = encoded.pieces.iter().map(piece).collect();
        Self { kind: encoded.kind.marker().into(), pieces }
    }

    fn read(self, file: &mut impl Read) -> Result<EncodedMedia> {
        let kinds = [MediaKind::Image, MediaKind::Audio, MediaKind::Video];
        let kind = kinds.into_iter().find(|kind| kind.marker() == self.kind);
        let kind = kind.with_context(|| format!("unknown media kind {}", self.kind))?;
        let pieces = self.pieces.into_iter().map(|KeptPiece { seconds, rows, width }| {
            ensure!(rows > 0 && width > 0, "an image or audio clip has no soft tokens");
            let length = rows.checked_mul(width).and_then(|count| count.checked_mul(4));
            let length = length.context(CUT)?;
            let mut bytes = Vec::new();
            file.take(length as u64).read_to_end(&mut bytes)?;
            ensure!(bytes.len() == length, CUT);
            let values = bytes.as_chunks().0.iter().map(|four| f32::from_le_bytes(*four));
            let rows = SoftTokens { count: rows, values: values.collect() };
            Ok(Piece { seconds, rows: Rc::new(rows) })
        });
        Ok(EncodedMedia { kind, pieces: pieces.collect::<Result<_>>()? })
    }
}

impl Saved {
    /// Writes the file; a failure does not cost an earlier one.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let header = Header {
            format: FORMAT.into(),
            version: VERSION,
            model: self.model.clone(),
            system: self.system.clone(),
            thinking: self.thinking,
            messages: self.messages.clone(),
            media: self.encoded.iter().map(KeptMedium::of).collect(),
            session_bytes: self.session.len() as u64,
        };
        let mut file = OutputFile::create(path)?;
        let mut write = || -> Result<()> {
            file.write_all((serde_json::to_string(&header)? + "\n").as_bytes())?;
            file.write_all(&self.session)?;
            for piece in self.encoded.iter().flat_map(|encoded| &encoded.pieces) {
                piece.rows.values.iter().try_for_each(|x| file.write_all(&x.to_le_bytes()))?;
            }
            Ok(())
        };
        write().with_context(|| path.display().to_string())?;
        file.finish()
    }

    /// Reads a file; whether it fits the model is for the model to say.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let read = || read(BufReader::new(File::open(path)?));
        read().with_context(|| path.display().to_string())
    }
}

fn read(mut file: impl BufRead) -> Result<Saved> {
    const NONE_OF_OURS: &str = "not a conversation saved by rullama";
    let mut line = Vec::new();
    file.by_ref().take(LONGEST_HEADER).read_until(b'\n', &mut line)?;
    let header: Header = serde_json::from_slice(&line).context(NONE_OF_OURS)?;
    ensure!(header.format == FORMAT, NONE_OF_OURS);
    if header.version != VERSION {
        bail!("unknown version {}; use the rullama version that saved it", header.version);
    }
    let mut session = Vec::new();
    file.by_ref().take(header.session_bytes).read_to_end(&mut session)?;
    ensure!(session.len() as u64 == header.session_bytes, CUT);
    let Header { model, system, thinking, messages, media, .. } = header;
    let encoded = media.into_iter().map(|kept| kept.read(&mut file)).collect::<Result<_>>()?;
    Ok(Saved { model, system, thinking, messages, encoded, session })
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

    fn saved() -> Saved {
        Saved {
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

    #[test]
    fn what_was_written_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("chat");
        saved().write(&path).expect("written");
        assert_eq!(Saved::read(&path).expect("read"), saved());
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }

    #[test]
    fn other_and_broken_files_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("chat");
        saved().write(&path).expect("written");
        let whole = std::fs::read(&path).expect("there");
        let check = |bytes: &[u8], part: &str| {
            std::fs::write(&path, bytes).expect("written");
            let error = format!("{:#}", Saved::read(&path).expect_err("refused"));
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

    /// The bytes of a file, and where its first line ends.
    fn written() -> (Vec<u8>, usize) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("chat");
        saved().write(&path).expect("written");
        let bytes = std::fs::read(&path).expect("there");
        let end = bytes.iter().position(|byte| *byte == b'\n').expect("a line");
        (bytes, end)
    }

    proptest! {
        /// A file that was changed anywhere is refused with words, or is a conversation whose media have all their rows.
        #[test]
        fn any_damage_is_survived(
            at in any::<Index>(), bytes in prop::collection::vec(any::<u8>(), 0..9), cut in any::<Index>(),
        ) {
            let (mut file, _) = written();
            let at = at.index(file.len());
            file.splice(at..(at + bytes.len()).min(file.len()), bytes);
            file.truncate(cut.index(2 * file.len()));
            check_any(&file);
        }

        /// The same where the first line is valid and only its numbers are not.
        #[test]
        fn any_numbers_are_survived(
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
