//! Kept conversations: a line of JSON with the messages, then the session's own bytes.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read, Write},
    path::Path,
};

use anyhow::{Context, Result, bail, ensure};
use rullama_chat::Message;
use serde::{Deserialize, Serialize};

const FORMAT: &str = "rullama conversation";
const VERSION: u32 = 1;
/// No conversation that fits a context comes near this.
const LONGEST_HEADER: u64 = 64 << 20;

/// A conversation that can be kept in a file.
#[derive(Debug, PartialEq)]
pub(super) struct Saved {
    /// Name of the model, for people; the session's bytes know which one it was.
    pub(super) model: String,
    pub(super) system: Option<String>,
    pub(super) thinking: bool,
    pub(super) messages: Vec<Message>,
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
    session_bytes: u64,
}

impl Saved {
    /// Writes the file under another name first, so that a failure does not cost an earlier one.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let name = || path.display().to_string();
        let header = Header {
            format: FORMAT.into(),
            version: VERSION,
            model: self.model.clone(),
            system: self.system.clone(),
            thinking: self.thinking,
            messages: self.messages.clone(),
            session_bytes: self.session.len() as u64,
        };
        let mut draft = path.as_os_str().to_owned();
        draft.push(".partial");
        let written = File::create(&draft).and_then(|mut file| {
            file.write_all((serde_json::to_string(&header)? + "\n").as_bytes())?;
            file.write_all(&self.session)
        });
        let written = written.and_then(|()| std::fs::rename(&draft, path));
        if written.is_err() {
            let _ = std::fs::remove_file(&draft);
        }
        written.with_context(name)
    }

    /// Reads a file; whether it fits the model is for the model to say.
    pub(super) fn read(path: &Path) -> Result<Self> {
        read(path).with_context(|| path.display().to_string())
    }
}

fn read(path: &Path) -> Result<Saved> {
    const NONE_OF_OURS: &str = "this is no conversation that rullama saved";
    let mut file = BufReader::new(File::open(path)?);
    let mut line = Vec::new();
    file.by_ref().take(LONGEST_HEADER).read_until(b'\n', &mut line)?;
    let header: Header = serde_json::from_slice(&line).context(NONE_OF_OURS)?;
    ensure!(header.format == FORMAT, NONE_OF_OURS);
    if header.version != VERSION {
        bail!("version {} is not known to this rullama; use the one that saved it", header.version);
    }
    let mut session = Vec::new();
    file.take(header.session_bytes).read_to_end(&mut session)?;
    ensure!(session.len() as u64 == header.session_bytes, "the file is cut short");
    let Header { model, system, thinking, messages, .. } = header;
    Ok(Saved { model, system, thinking, messages, session })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved() -> Saved {
        Saved {
            model: "gemma4".into(),
            system: Some("Be\nbrief.".into()),
            thinking: true,
            messages: vec![Message::new("user", "Hi\n"), Message::new("assistant", "Hello")],
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
        check(&whole[..whole.len() - 1], "cut short");
        check(&whole[..40], "no conversation");
        check(b"", "no conversation");
        check(b"{}\n", "no conversation");
        let text = String::from_utf8_lossy(&whole).into_owned();
        check(text.replace("\"version\":1", "\"version\":2").as_bytes(), "version 2");
        check(text.replace("rullama conv", "another conv").as_bytes(), "no conversation");
    }
}
