//! Files dropped into a line of a chat: terminals write their paths there, quoted or with escapes.

use std::path::PathBuf;

use rullama::{MediaFile, MediaKind};

/// What may stand after a path without being part of it.
const PUNCTUATION: [char; 6] = ['.', ',', ';', ':', '?', '!'];

/// A line taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Dropped {
    /// The line without the paths.
    pub(super) text: String,
    /// The images and audio there are.
    pub(super) files: Vec<MediaFile>,
    /// Words that look like such paths and lead nowhere.
    pub(super) missing: Vec<String>,
}

/// Takes the paths of images and audio out of a line.
pub(super) fn dropped(line: &str) -> Dropped {
    let mut found = Dropped::default();
    let mut rest = line;
    while let Some(start) = rest.find(|c: char| !c.is_whitespace()) {
        found.text.push_str(&rest[..start]);
        rest = &rest[start..];
        let word = &rest[..word_end(rest)];
        match file(word) {
            Some((path, kind, rest)) => {
                found.files.push(MediaFile { kind, path });
                // No gap where the path was.
                let gap = found.text.trim_end().len();
                found.text.truncate(gap);
                found.text.push_str(rest);
            }
            None => {
                let name = unescaped(word.trim_end_matches(PUNCTUATION));
                if name.contains('/') && MediaFile::guess(&name).is_some() {
                    found.missing.push(name);
                }
                found.text.push_str(word);
            }
        }
        rest = &rest[word.len()..];
    }
    found.text.push_str(rest);
    if !found.files.is_empty() {
        found.text = found.text.trim().into();
    }
    found
}

/// Whether a line begins with an image or audio clip: such a path may look like a command.
pub(super) fn begins_with_file(line: &str) -> bool {
    let line = line.trim_start();
    file(&line[..word_end(line)]).is_some()
}

/// Where the first word ends: at the quote that closes it, or at a blank without a backslash before it.
fn word_end(text: &str) -> usize {
    if let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\''))
        && let Some(close) = text[1..].find(quote)
    {
        return close + 2;
    }
    let mut escaped = false;
    let end = text.find(|c: char| {
        let ends = c.is_whitespace() && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    end.unwrap_or(text.len())
}

/// The file that a word names, what it is, and what stands after the name.
fn file(word: &str) -> Option<(PathBuf, MediaKind, &str)> {
    let quoted = |quote| word.strip_prefix(quote)?.strip_suffix(quote);
    if let Some(inner) = quoted('"').or_else(|| quoted('\'')) {
        return existing(inner).map(|(path, kind)| (path, kind, ""));
    }
    let bare = word.trim_end_matches(PUNCTUATION);
    [word, bare].into_iter().find_map(|name| {
        let found = existing(name).or_else(|| existing(&unescaped(name)))?;
        Some((found.0, found.1, &word[name.len()..]))
    })
}

fn existing(name: &str) -> Option<(PathBuf, MediaKind)> {
    let path = match name.strip_prefix("~/") {
        Some(rest) => std::env::home_dir()?.join(rest),
        None => name.into(),
    };
    let kind = MediaFile::guess(&path)?.kind;
    path.is_file().then_some((path, kind))
}

/// The word without backslashes that protect what follows them.
fn unescaped(word: &str) -> String {
    let mut escaped = false;
    let kept = word.chars().filter(|c| {
        escaped = *c == '\\' && !escaped;
        !escaped
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_out_of_lines() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for name in ["a.png", "b c.WAV", "it's.jpg", "notes.txt"] {
            std::fs::write(at(name), "").expect("written");
        }
        let root = folder.path().to_str().expect("a path of ours");
        let image = |name: &str| MediaFile { kind: MediaKind::Image, path: at(name) };
        let audio = |name: &str| MediaFile { kind: MediaKind::Audio, path: at(name) };
        for (line, text, files) in [
            ("What is @/a.png?", "What is?", vec![image("a.png")]),
            ("@/a.png", "", vec![image("a.png")]),
            ("'@/b c.WAV' who is this", "who is this", vec![audio("b c.WAV")]),
            ("\"@/b c.WAV\" and @/a.png  too", "and  too", vec![audio("b c.WAV"), image("a.png")]),
            ("Listen: @/b\\ c.WAV please", "Listen: please", vec![audio("b c.WAV")]),
            ("@/it\\'s.jpg", "", vec![image("it's.jpg")]),
            ("read @/notes.txt", "read @/notes.txt", vec![]),
            ("say \"hello there\" twice ", "say \"hello there\" twice ", vec![]),
            ("it's 5 o'clock", "it's 5 o'clock", vec![]),
        ] {
            let [line, text] = [line, text].map(|text| text.replace('@', root));
            let found = dropped(&line);
            assert_eq!((found.text, found.files, found.missing), (text, files, vec![]), "{line}");
        }
        let gone = dropped("see ./no/such.png, or b.png");
        assert_eq!((gone.files.len(), gone.missing), (0, vec!["./no/such.png".to_owned()]));
        assert!(begins_with_file(&format!(" {root}/a.png what?")));
        assert!(!begins_with_file("/save a.png") && !begins_with_file(""));
    }
}
