//! Modification times of a fresh clone. Cargo compiles what is newer than its last build, and all of a clone is new. Files with the content that
//! the last run found in the same folder get the time that they had then; all others stay new.

use std::{
    collections::HashMap,
    fs::{self, File},
    io,
    path::Path,
    time::{Duration, SystemTime},
};

use anyhow::Result;

use crate::command::{output, root, target};

/// Content (git's hash) and modification time of files.
type Files = HashMap<String, (String, Duration)>;

/// Restores the times of unchanged files in a fresh clone, and keeps those of all files for the next one. What was compiled in the folder of a
/// clone must have been compiled after a call of this: an edit by hand would be taken for the content that is kept.
pub(crate) fn restore() -> Result<()> {
    let kept = target().join("clone-times.txt");
    let written = fs::metadata(&kept).and_then(|kept| kept.modified());
    let known = fs::read_to_string(&kept).map_or_else(|_| Files::new(), |text| parse(&text));
    // Other clones share the target folder.
    let (known, mut files): (Files, Files) =
        known.into_iter().partition(|(path, _)| path.starts_with(&key("")));
    if output("git", &["status", "--porcelain", "--untracked-files=no"])?.is_empty() {
        let listing = output("git", &["ls-files", "--stage"])?;
        let tracked: Vec<_> = tracked(&listing).collect();
        // The tree of the last run has the times that Cargo knows already.
        let is_fresh = tracked.iter().all(|(path, _)| is_newer(&root().join(path), &written));
        for (path, hash) in tracked {
            let known = known.get(&key(&path)).filter(|_| is_fresh);
            let time = time_of(&root().join(&path), known, &hash)?;
            files.insert(key(&path), (hash, time));
        }
    }
    fs::create_dir_all(target())?;
    fs::write(kept, print(&files))?;
    Ok(())
}

/// Whether a file was written after the times were kept.
fn is_newer(path: &Path, kept: &io::Result<SystemTime>) -> bool {
    match (fs::metadata(path).and_then(|file| file.modified()), kept) {
        (Ok(modified), Ok(kept)) => modified > *kept,
        _ => false,
    }
}

/// The absolute path of a file.
fn key(path: &str) -> String {
    format!("{}/{path}", root().display())
}

/// Path and hash of each regular file of `git ls-files --stage`.
fn tracked(listing: &str) -> impl Iterator<Item = (String, String)> {
    listing.lines().filter(|line| line.starts_with("100")).filter_map(|line| {
        let (about, path) = line.split_once('\t')?;
        Some((path.to_owned(), about.split(' ').nth(1)?.to_owned()))
    })
}

/// A file's modification time: the known one, which it gets, if its content is the known one.
fn time_of(path: &Path, known: Option<&(String, Duration)>, hash: &str) -> Result<Duration> {
    if let Some((_, time)) = known.filter(|(known, _)| known == hash) {
        File::options().append(true).open(path)?.set_modified(SystemTime::UNIX_EPOCH + *time)?;
        return Ok(*time);
    }
    Ok(fs::metadata(path)?.modified()?.duration_since(SystemTime::UNIX_EPOCH)?)
}

fn print(files: &Files) -> String {
    let line = |(path, (hash, time)): (&String, &(String, Duration))| {
        format!("{hash} {} {path}\n", time.as_nanos())
    };
    files.iter().map(line).collect()
}

fn parse(text: &str) -> Files {
    let file = |line: &str| {
        let (hash, rest) = line.split_once(' ')?;
        let (time, path) = rest.split_once(' ')?;
        let time = Duration::from_nanos(time.parse().ok()?);
        Some((path.to_owned(), (hash.to_owned(), time)))
    };
    text.lines().filter_map(file).collect()
}

#[cfg(test)]
mod tests {
    use std::{
        fs, io,
        time::{Duration, SystemTime},
    };

    use super::{Files, is_newer, parse, print, time_of, tracked};

    #[test]
    fn regular_files_are_listed_with_their_hashes() {
        let listing =
            "100644 aa11 0\tsrc/lib.rs\n120000 bb22 0\ta link\n100755 cc33 0\ta tool.sh\n";
        let found: Vec<_> = tracked(listing).collect();
        let wanted = [("src/lib.rs", "aa11"), ("a tool.sh", "cc33")];
        assert_eq!(found, wanted.map(|(path, hash)| (path.to_owned(), hash.to_owned())));
    }

    #[test]
    fn what_is_kept_is_read_back() {
        let file = |path: &str, time| (path.to_owned(), ("aa11".to_owned(), time));
        let files = Files::from([
            file("/a/b c.rs", Duration::new(1_800_000_000, 123_456_789)),
            file("/a/d.rs", Duration::new(1_700_000_000, 0)),
        ]);
        assert_eq!(parse(&print(&files)), files);
        assert_eq!(parse("damaged\nx y z\n"), Files::new());
    }

    #[test]
    fn only_unchanged_content_gets_its_old_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "text").unwrap();
        let old = Duration::new(1_700_000_000, 0);
        let now = time_of(&path, None, "aa11").unwrap();
        assert_eq!(time_of(&path, Some(&("bb22".into(), old)), "aa11").unwrap(), now);
        assert_eq!(time_of(&path, Some(&("aa11".into(), old)), "aa11").unwrap(), old);
        assert_eq!(time_of(&path, None, "aa11").unwrap(), old);
    }

    #[test]
    fn a_clone_is_newer_than_what_was_kept_of_the_last_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "text").unwrap();
        let now = SystemTime::now();
        assert!(is_newer(&path, &Ok(now - Duration::from_secs(60))));
        assert!(!is_newer(&path, &Ok(now + Duration::from_secs(60))));
        assert!(!is_newer(&path, &Err(io::ErrorKind::NotFound.into())));
        assert!(!is_newer(&folder.path().join("missing"), &Ok(now)));
    }
}
