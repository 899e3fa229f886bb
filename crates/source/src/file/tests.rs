use std::fs;

use pollster::block_on;
use tempfile::TempDir;

#[cfg(unix)]
use crate::Change;
use crate::{ByteSource, FileSource, SourceError};

fn file_with(content: &[u8]) -> (TempDir, std::path::PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("model.gguf");
    fs::write(&path, content).unwrap();
    (folder, path)
}

#[test]
fn reads_are_exact_and_copy_nothing() {
    let content: Vec<u8> = (0..=255).cycle().take(10_000).collect();
    let (_folder, path) = file_with(&content);
    let file = FileSource::open(&path).unwrap();
    assert_eq!(file.len(), 10_000);
    assert!(file.name().ends_with("model.gguf"));

    let whole = block_on(file.read(0..10_000)).unwrap();
    assert_eq!(whole, content);
    let part = block_on(file.read(4_097..4_200)).unwrap();
    assert_eq!(part, content[4_097..4_200]);
    assert_eq!(part.as_ptr(), whole[4_097..].as_ptr(), "both point into the map");
    assert!(block_on(file.read(10_000..10_000)).unwrap().is_empty());
}

#[test]
fn bytes_outlive_their_source() {
    let (_folder, path) = file_with(b"still here");
    let bytes = block_on(FileSource::open(&path).unwrap().read(0..5)).unwrap();
    assert_eq!(&bytes[..], b"still");
}

#[test]
fn ranges_outside_are_refused() {
    let (_folder, path) = file_with(b"12345");
    let file = FileSource::open(&path).unwrap();
    let reversed = std::ops::Range { start: 3, end: 2 };
    for range in [0..6, 6..6, u64::MAX - 1..u64::MAX, 0..u64::MAX, reversed] {
        let error = block_on(file.read(range.clone())).unwrap_err();
        assert!(
            matches!(error, SourceError::OutOfRange { start, end, len: 5, .. }
                if start == range.start && end == range.end),
            "{range:?}: {error}"
        );
    }
}

#[test]
fn empty_files_folders_and_missing_files_are_refused() {
    let (folder, path) = file_with(b"");
    let open = |path: &std::path::Path| FileSource::open(path).unwrap_err();
    assert!(matches!(open(&path), SourceError::Empty { .. }));
    assert!(matches!(open(folder.path()), SourceError::NotAFile { .. }));
    let missing = folder.path().join("missing");
    let error = open(&missing);
    assert!(
        matches!(&error, SourceError::Missing { name } if name.ends_with("missing")),
        "{error}"
    );
    // A path below a file is an error of the system, not a panic.
    assert!(FileSource::open(path.join("below")).is_err());
}

#[cfg(unix)]
#[test]
fn a_device_is_refused_without_reading_it() {
    assert!(matches!(FileSource::open("/dev/zero"), Err(SourceError::NotAFile { .. })));
}

#[test]
fn denied_differs_from_other_failures() {
    // Tests may run as root, who may read everything, so the error mapping is tested instead of the file system.
    let error = super::system_error("x", std::io::ErrorKind::PermissionDenied.into());
    assert!(matches!(error, SourceError::Denied { .. }), "{error}");
    let error = super::system_error("x", std::io::ErrorKind::InvalidInput.into());
    assert!(matches!(error, SourceError::Io { .. }), "{error}");
}

// Windows locks mapped files.
#[cfg(unix)]
#[test]
fn a_changed_length_is_an_error() {
    let (_folder, path) = file_with(&[7; 9_000]);
    for new in [100, 0, 20_000] {
        fs::write(&path, [7; 9_000]).unwrap();
        let file = FileSource::open(&path).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_len(new).unwrap();
        let error = block_on(file.read(8_000..8_001)).unwrap_err();
        let change = Change::Length { was: 9_000, now: new };
        assert!(
            matches!(&error, SourceError::Changed { change: c, .. } if *c == change),
            "{error}"
        );
        assert!(error.to_string().contains("open it again"), "{error}");
    }
}

#[cfg(unix)]
#[test]
fn a_file_replaced_by_rename_is_still_read() {
    let (folder, path) = file_with(b"first");
    let file = FileSource::open(&path).unwrap();
    let other = folder.path().join("other");
    fs::write(&other, b"second!").unwrap();
    fs::rename(&other, &path).unwrap();
    assert_eq!(&block_on(file.read(0..5)).unwrap()[..], b"first");
}
