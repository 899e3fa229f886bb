//! A folder of compiled pipelines: a file for each adapter, driver and version of this library.

use std::{
    fs::{self, File, Metadata},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use rullama_engine::gpu::{MAX_PIPELINE_CACHE_BYTES, PipelineKey, PipelineStore};

/// Maximum size of a file.
const MAX_BYTES: u64 = MAX_PIPELINE_CACHE_BYTES as u64;

/// Files of an adapter: two versions of this library that are used in turn keep theirs.
const KEPT: usize = 4;

/// A folder in which compiled pipelines are kept. Failures are not reported: pipelines are compiled again.
#[derive(Debug)]
pub(crate) struct PipelineFolder(pub(crate) PathBuf);

impl PipelineStore for PipelineFolder {
    fn load(&self, key: &PipelineKey) -> Option<Vec<u8>> {
        read(&self.0.join(key.name())).ok()
    }

    fn save(&self, key: &PipelineKey, data: &[u8]) {
        let name = key.name();
        if write(&self.0, &name, data).is_ok() {
            let _ = remove_old(&self.0, key.adapter());
        }
    }
}

/// Reads a file that only the user can write to.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let found = file.metadata()?;
    if !found.is_file() || found.len() > MAX_BYTES || !is_private(&found) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut data = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut data)?;
    Ok(data)
}

/// Whether the user owns the file and nobody else may write to it.
#[cfg(unix)]
fn is_private(file: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    file.uid() == rustix::process::geteuid().as_raw() && file.mode() & 0o022 == 0
}

/// Elsewhere the folder's access list, which files inherit, decides.
#[cfg(not(unix))]
fn is_private(_: &Metadata) -> bool {
    true
}

/// Writes a file that appears complete or not at all, readable and writable by the user alone.
fn write(folder: &Path, name: &str, data: &[u8]) -> io::Result<()> {
    let mut create = fs::DirBuilder::new();
    create.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut create, 0o700);
    create.create(folder)?;
    let mut file =
        tempfile::Builder::new().prefix(&format!("{name}.")).suffix(".part").tempfile_in(folder)?;
    file.write_all(data)?;
    // Not flushed to the disk, which takes long: a file that a power cut damages is ignored.
    file.persist(folder.join(name))?;
    Ok(())
}

/// Removes all but the newest files of an adapter: those of earlier drivers and versions of this library, and what a killed process was writing.
fn remove_old(folder: &Path, adapter: &str) -> io::Result<()> {
    let adapter = format!("{adapter}_");
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)?.flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(&adapter)) {
            let modified = entry.metadata().and_then(|found| found.modified());
            found.extend(modified.map(|modified| (modified, entry.path())));
        }
    }
    found.sort_unstable();
    for (_, path) in found.iter().rev().skip(KEPT) {
        let _ = fs::remove_file(path);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        path::Path,
        time::{Duration, SystemTime},
    };

    use super::{MAX_BYTES, read, remove_old, write};

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder").flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn files_are_written_whole_and_replaced() {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = parent.path().join("not/there/yet");
        for data in [b"one".as_slice(), b"two"] {
            write(&folder, "gpu_1", data).expect("written");
            assert_eq!(read(&folder.join("gpu_1")).expect("read"), data);
            assert_eq!(names(&folder), ["gpu_1"]);
        }
    }

    #[cfg(unix)]
    #[test]
    fn files_belong_to_the_user_alone() {
        use std::os::unix::fs::PermissionsExt;
        let parent = tempfile::tempdir().expect("a folder");
        let folder = parent.path().join("pipelines");
        write(&folder, "gpu_1", b"one").expect("written");
        let file = folder.join("gpu_1");
        for (path, wanted) in [(&folder, 0o700), (&file, 0o600)] {
            let mode = fs::metadata(path).expect("it exists").permissions().mode();
            assert_eq!(mode & 0o777, wanted, "{}", path.display());
        }
        for mode in [0o620, 0o602] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("set");
            assert!(read(&file).is_err(), "others may write to it: {mode:o}");
        }
    }

    #[test]
    fn what_is_no_file_of_ours_is_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(read(&folder.path().join("missing")).is_err());
        assert!(read(folder.path()).is_err());
        let large = fs::File::create(folder.path().join("large")).expect("a file");
        large.set_len(MAX_BYTES + 1).expect("a sparse file");
        assert!(read(&folder.path().join("large")).is_err());
    }

    #[test]
    fn the_newest_files_of_an_adapter_are_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let all =
            ["gpu_1_a", "gpu_1_b.x.part", "gpu_1_c", "gpu_1_d", "gpu_1_e", "gpu_12_a", "other"];
        for (hour, name) in all.iter().enumerate() {
            let file = fs::File::create(folder.path().join(name)).expect("a file");
            // The order of names is not that of times.
            let hour = (hour as u64 + 2) % 5;
            let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(3600 * hour);
            file.set_modified(modified).expect("a time");
        }
        remove_old(folder.path(), "gpu_1").expect("a folder");
        let kept = ["gpu_12_a", "gpu_1_a", "gpu_1_b.x.part", "gpu_1_c", "gpu_1_e", "other"];
        assert_eq!(names(folder.path()), kept);
    }
}
