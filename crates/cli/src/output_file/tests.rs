use std::{
    fs,
    io::Write,
    path::Path,
    time::{Duration, SystemTime},
};

use tempfile::TempDir;

use super::{File, OutputFile, PREFIX, STALE, SUFFIX, parts, protect, protect_store, write};

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn refusal(path: &Path) -> String {
    let error = OutputFile::create(path).err().expect("refused");
    format!("{error:#}")
}

#[test]
fn a_file_appears_whole_or_not_at_all() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("out");
    write(&path, b"before").expect("written");
    let mut file = OutputFile::create(&path).expect("a part");
    file.write_all(b"half").expect("written");
    file.flush().expect("flushed");
    assert_eq!(fs::read(&path).expect("there"), b"before");
    let part = names(folder.path()).into_iter().find(|name| name.ends_with(SUFFIX));
    let part = folder.path().join(part.expect("a part file"));
    assert!(parts().contains(&part), "the part file is registered for Ctrl-C");
    drop(file);
    assert_eq!(names(folder.path()), ["out"], "an unfinished file leaves nothing");
    assert!(!parts().contains(&part));
    write(&path, b"after").expect("written");
    assert_eq!(fs::read(&path).expect("there"), b"after");
    assert_eq!(names(folder.path()), ["out"]);
}

#[test]
fn a_published_log_can_be_appended_to() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("log");
    let mut file = OutputFile::create(&path).expect("a part");
    file.write_all(b"one\n").expect("written");
    let mut file = file.publish().expect("named");
    file.write_all(b"two\n").expect("written");
    assert_eq!(fs::read(&path).expect("there"), b"one\ntwo\n");
}

#[test]
fn only_stale_part_files_are_removed() {
    let folder = TempDir::new().expect("a folder");
    let make = |name: &str, old: bool| {
        let file = File::create(folder.path().join(name)).expect("made");
        let age = if old { STALE + Duration::from_secs(1) } else { Duration::ZERO };
        file.set_modified(SystemTime::now() - age).expect("aged");
        file
    };
    let [dead, held, fresh] = ["dead", "held", "fresh"].map(|n| format!("{PREFIX}{n}{SUFFIX}"));
    make(&dead, true);
    let lock = make(&held, true);
    lock.try_lock().expect("free");
    make(&fresh, false);
    make("other.part", true);
    write(&folder.path().join("out"), b"").expect("written");
    assert_eq!(names(folder.path()), [fresh, held, "other.part".into(), "out".into()]);
}

#[test]
fn inputs_are_not_replaced_under_any_name() {
    let folder = TempDir::new().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("model"), b"weights").expect("made");
    protect(&at("model"));
    fs::create_dir(at("inner")).expect("made");
    let mut same = vec![at("model"), at("inner/../model")];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(at("model"), at("soft")).expect("linked");
        fs::hard_link(at("model"), at("hard")).expect("linked");
        same.extend([at("soft"), at("hard")]);
    }
    for path in same {
        let error = refusal(&path);
        assert!(error.contains("reads the file"), "{error}");
    }
    write(&at("copy"), b"").expect("another name is free");
    assert_eq!(fs::read(at("model")).expect("there"), b"weights");
}

#[test]
fn files_of_a_store_are_not_replaced() {
    let folder = TempDir::new().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let blob = at("store/blobs/sha256-1");
    fs::create_dir_all(at("store/blobs")).expect("made");
    fs::create_dir_all(at("store/manifests")).expect("made");
    fs::write(&blob, b"weights").expect("made");
    protect_store(&at("store"));
    let mut inside = vec![blob.clone(), at("store/blobs/new"), at("store/manifests/new")];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&blob, at("soft")).expect("linked");
        std::os::unix::fs::symlink(at("store/blobs"), at("folder")).expect("linked");
        fs::hard_link(&blob, at("hard")).expect("linked");
        inside.extend([at("soft"), at("hard"), at("folder/new")]);
    }
    for path in inside {
        let error = refusal(&path);
        assert!(error.contains("model store"), "{error}");
    }
    write(&at("store/other"), b"").expect("only blobs and manifests are protected");
}

#[cfg(unix)]
#[test]
fn links_are_followed_permissions_kept_and_devices_written_to() {
    use std::os::unix::fs::PermissionsExt;
    let folder = TempDir::new().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("real"), b"").expect("made");
    fs::set_permissions(at("real"), fs::Permissions::from_mode(0o640)).expect("set");
    std::os::unix::fs::symlink(at("real"), at("link")).expect("linked");
    write(&at("link"), b"x").expect("written");
    assert_eq!(fs::read(at("real")).expect("there"), b"x");
    assert!(at("link").is_symlink());
    let mode = fs::metadata(at("real")).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    fs::set_permissions(at("real"), fs::Permissions::from_mode(0o440)).expect("set");
    assert!(refusal(&at("real")).contains("read-only"));
    write(Path::new("/dev/null"), b"x").expect("written");
    assert!(!fs::metadata("/dev/null").expect("there").is_file());
    assert!(refusal(folder.path()).contains("folder"));
    assert!(refusal(&at("none/out")).contains("none"));
}
