//! Compiled GPU pipelines, kept for the next start.

use std::{
    fs,
    io::Read,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use serde_json::Value;

use crate::{
    interrupt::press,
    models::{MICRO, TINY, golden_arg},
    program::{Program, rullama},
    serve::Serving,
};

/// A greedy reply on the GPU, with this folder for caches.
fn reply(cache: &Path) -> Program {
    let model = golden_arg(MICRO);
    let args = ["run", &model, "Hello", "--device", "gpu", "--temperature", "0", "-n", "4"];
    rullama(args).and(["--ctx", "256"]).env("XDG_CACHE_HOME", cache)
}

/// The files that are kept.
fn files(cache: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(cache.join("rullama/pipelines")) else { return Vec::new() };
    entries.flatten().map(|entry| entry.path()).collect()
}

/// The one file that is kept.
#[track_caller]
fn file(cache: &Path) -> PathBuf {
    let files = files(cache);
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

#[test]
fn the_second_start_uses_what_the_first_one_kept() {
    let cache = tempfile::tempdir().unwrap();
    let first = reply(cache.path()).stdout();
    let kept = file(cache.path());
    let (before, whole) = (fs::metadata(&kept).unwrap(), fs::read(&kept).unwrap());
    assert_eq!(before.permissions().mode() & 0o777, 0o600);
    assert_eq!(reply(cache.path()).stdout(), first);
    // A file that was not read would be written again; a later run may have compiled more of the kernels that are compiled early.
    let after = fs::metadata(file(cache.path())).unwrap();
    assert!(after.ino() == before.ino() || after.len() > before.len());

    // A damaged file is replaced, and of too many files the one that was used least recently is removed.
    let adapter = kept.to_str().unwrap().rsplit_once('_').unwrap().0;
    let others = [0, 1, 2, 3].map(|hour| (hour, PathBuf::from(format!("{adapter}_{hour:016x}"))));
    for (hour, other) in &others {
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(3600 * hour);
        fs::File::create(other).unwrap().set_modified(modified).unwrap();
    }
    let mut damaged = whole.clone();
    damaged[0] ^= 1;
    fs::write(&kept, &damaged).unwrap();
    assert_eq!(reply(cache.path()).stdout(), first);
    assert_eq!(fs::read(&kept).unwrap()[..44], whole[..44]);
    assert_eq!(others.map(|(_, other)| other.exists()), [false, true, true, true]);
}

#[test]
fn a_folder_that_cannot_be_written_to_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let no_folder = folder.path().join("a file");
    fs::write(&no_folder, "").unwrap();
    assert!(!reply(&no_folder).stdout().is_empty());
}

/// A home folder that is no absolute path would be one in the current folder.
#[test]
fn nothing_is_kept_in_the_current_folder() {
    let folder = tempfile::tempdir().unwrap();
    let run = reply(Path::new("cache")).env("HOME", "home").folder(folder.path());
    assert!(!run.stdout().is_empty());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn nothing_is_kept_where_the_user_does_not_want_it() {
    let cache = tempfile::tempdir().unwrap();
    assert!(!reply(cache.path()).and(["--no-pipeline-cache"]).stdout().is_empty());
    assert!(!cache.path().join("rullama").exists());
}

#[test]
fn ctrl_c_keeps_what_was_compiled() {
    let cache = tempfile::tempdir().unwrap();
    let model = golden_arg(TINY);
    let args = ["run", &model, "Hello", "--device", "gpu", "--temperature", "0", "--ctx", "4096"];
    let mut program = rullama(args).env("XDG_CACHE_HOME", cache.path());
    let mut child = program.spawn();
    drop(child.stdin.take());
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 8]).unwrap();
    press(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    file(cache.path());
}

#[test]
fn a_server_keeps_what_it_compiled_when_it_ends() {
    let cache = tempfile::tempdir().unwrap();
    let file_arg = format!("micro={}", golden_arg(MICRO));
    let args = ["serve", "--port", "0", "--json", "--device", "gpu", "--model", &file_arg];
    let serving = Serving::start(rullama(args).env("XDG_CACHE_HOME", cache.path()));
    let line: Value = serde_json::from_str(&serving.first_line).unwrap();
    let url = line["url"].as_str().unwrap();
    let ask = ["run", "micro", "Hello", "-n", "2", "--ctx", "256", "--json"];
    assert!(rullama(ask).env("OLLAMA_HOST", url).json()["server"].is_string());
    let (code, _, errors) = serving.end("INT");
    // Without a desktop session some graphics libraries warn on standard error.
    assert_eq!(code, Some(0), "{errors}");
    file(cache.path());
}
