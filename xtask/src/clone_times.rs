//! Modification times of a fresh clone. Cargo compiles what is newer than its last build, and all of a clone is new. Files with the content that
//! the last run found in the same folder get the time that they had then; all others stay new.

use std::{
    collections::HashMap,
    fs::{self, File},
    path::Path,
    time::{Duration, SystemTime},
};

use anyhow::Result;

use crate::command::{output, root, target};

/// Content (git's hash) and modification time of files.
type Files = HashMap<String, (String, Duration)>;

/// Restores the times of unchanged files, and keeps those of all files for the next run. Only for a clone in which nothing was edited or built
/// by hand: every build in the target folder must follow a call of this.
pub(crate) fn restore() -> Result<()> {
    if !output("git", &["status", "--porcelain", "--untracked-files=no"])?.is_empty() {
        return Ok(());
    }
    let kept = target().join("clone-times.txt");
    let known = fs::read_to_string(&kept).map_or_else(|_| Files::new(), |text| parse(&text));
    let mut files = Files::new();
    for (path, hash) in tracked(&output("git", &["ls-files", "--stage"])?) {
        let time = time_of(&root().join(&path), known.get(&key(&path)), &hash)?;
        files.insert(key(&path), (hash, time));
    }
    // Other clones share the target folder.
    let others = known.into_iter().filter(|(path, _)| !path.starts_with(&key("")));
    files.extend(others);
    fs::create_dir_all(target())?;
    fs::write(kept, print(&files))?;
    Ok(())
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
    use std::{fs, time::Duration};

    use super::{Files, parse, print, time_of, tracked};

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
}
