//! A folder of compiled pipelines: a file for each adapter, driver and version of this library.

use std::{
    fs::{self, File, Metadata},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use rullama_engine::gpu::{MAX_PIPELINE_CACHE_BYTES, PipelineKey, PipelineStore};

/// Maximum size of a file.
const MAX_BYTES: u64 = MAX_PIPELINE_CACHE_BYTES as u64;

/// Files that are kept of an adapter, so that versions of this library or of the driver can be used in turn.
const KEPT: usize = 4;

/// A part of a file is older than this if what was writing it was killed.
const WRITTEN_IN: Duration = Duration::from_hours(24);

/// The end of the name of a file that is being written.
const PART: &str = ".part";

/// A folder in which compiled pipelines are kept. Failures are not reported: pipelines are compiled again.
#[derive(Debug)]
pub(crate) struct PipelineFolder(pub(crate) PathBuf);

impl PipelineStore for PipelineFolder {
    fn load(&self, key: &PipelineKey) -> Option<Vec<u8>> {
        read(&self.0, &key.name()).ok()
    }

    fn save(&self, key: &PipelineKey, data: &[u8]) {
        let name = key.name();
        if write(&self.0, &name, data).is_ok() {
            let _ = remove_old(&self.0, key.adapter(), &name);
        }
    }
}

/// Reads a file of a folder, to both of which only the user can write.
fn read(folder: &Path, name: &str) -> io::Result<Vec<u8>> {
    check_folder(folder)?;
    let file = open(&folder.join(name))?;
    let found = file.metadata()?;
    if !found.is_file() || found.len() > MAX_BYTES || !is_private(&found) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut data = Vec::new();
    (&file).take(MAX_BYTES).read_to_end(&mut data)?;
    // What is used stays longest.
    let _ = file.set_modified(SystemTime::now());
    Ok(data)
}

/// Opens a file, but follows no link and waits for no pipe.
fn open(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags);
    }
    #[cfg(windows)]
    {
        use std::os::windows::fs::OpenOptionsExt;
        // Constants of the Windows API: the last two are needed to set the file's time, and to open a link instead of what it leads to.
        const GENERIC_READ: u32 = 0x8000_0000;
        const FILE_WRITE_ATTRIBUTES: u32 = 0x100;
        const FILE_FLAG_OPEN_REPARSE_POINT: u32 = 0x20_0000;
        options.access_mode(GENERIC_READ | FILE_WRITE_ATTRIBUTES);
        options.custom_flags(FILE_FLAG_OPEN_REPARSE_POINT);
    }
    options.read(true).open(path)
}

/// Fails if this is a link, or others than the user can write to it.
fn check_folder(folder: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(folder)?;
    if found.is_dir() && is_private(&found) {
        Ok(())
    } else {
        Err(io::ErrorKind::InvalidData.into())
    }
}

/// Takes a folder of the user away from others who may write to it, as the group of a volume of Kubernetes may.
#[cfg(unix)]
fn make_private(folder: &Path) -> io::Result<()> {
    use rustix::fs::{Mode, OFlags, fchmod, fstat, open};
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    let folder = open(folder, flags, Mode::empty())?;
    let found = fstat(&folder)?;
    let is_own = found.st_uid == rustix::process::geteuid().as_raw();
    if is_own && Mode::from_raw_mode(found.st_mode).intersects(Mode::WGRP | Mode::WOTH) {
        fchmod(&folder, Mode::RWXU)?;
    }
    Ok(())
}

/// Elsewhere the folder's access list decides.
#[cfg(not(unix))]
fn make_private(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Whether the user owns a file or folder and nobody else may write to it.
#[cfg(unix)]
fn is_private(found: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o022 == 0
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
    make_private(folder)?;
    check_folder(folder)?;
    let mut file =
        tempfile::Builder::new().prefix(&format!("{name}.")).suffix(PART).tempfile_in(folder)?;
    file.write_all(data)?;
    // Not flushed to the disk, which takes long: a file that a power cut damages is ignored.
    file.persist(folder.join(name))?;
    Ok(())
}

/// Removes the files of an adapter that were used least recently, but not the one just `written`, and what killed processes were writing.
fn remove_old(folder: &Path, adapter: &str, written: &str) -> io::Result<()> {
    let adapter = format!("{adapter}_");
    let mut whole = Vec::new();
    for entry in fs::read_dir(folder)?.flatten() {
        let name = entry.file_name();
        let is_other = |name: &&str| name.starts_with(&adapter) && *name != written;
        let Some(name) = name.to_str().filter(is_other) else { continue };
        let Ok(modified) = entry.metadata().and_then(|found| found.modified()) else { continue };
        if !name.ends_with(PART) {
            whole.push((modified, entry.path()));
        } else if modified.elapsed().is_ok_and(|age| age > WRITTEN_IN) {
            let _ = fs::remove_file(entry.path());
        }
    }
    whole.sort_unstable();
    for (_, path) in whole.iter().rev().skip(KEPT - 1) {
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

    use super::{MAX_BYTES, WRITTEN_IN, read, remove_old, write};

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
            assert_eq!(read(&folder, "gpu_1").expect("read"), data);
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
        let set = |path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
        };
        for mode in [0o620, 0o602] {
            set(&file, mode);
            assert!(read(&folder, "gpu_1").is_err(), "others may write to the file: {mode:o}");
        }
        set(&file, 0o600);
        for mode in [0o770, 0o707] {
            set(&folder, mode);
            assert!(read(&folder, "gpu_1").is_err(), "others may write to the folder: {mode:o}");
        }
        set(&folder, 0o700);
        assert_eq!(read(&folder, "gpu_1").expect("read"), b"one");
        // A volume of Kubernetes is opened to a group whenever it is mounted.
        for mode in [0o2770, 0o707] {
            set(&folder, mode);
            write(&folder, "gpu_1", b"two").expect("written");
            let mode = fs::metadata(&folder).expect("it exists").permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
            assert_eq!(read(&folder, "gpu_1").expect("read"), b"two");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed() {
        use std::os::unix::fs::symlink;
        let parent = tempfile::tempdir().expect("a folder");
        let folder = parent.path().join("pipelines");
        write(&folder, "gpu_1", b"one").expect("written");
        symlink(folder.join("gpu_1"), folder.join("gpu_2")).expect("a link");
        symlink(&folder, parent.path().join("other")).expect("a link");
        assert!(read(&folder, "gpu_2").is_err());
        assert!(read(&parent.path().join("other"), "gpu_1").is_err());
        assert!(write(&parent.path().join("other"), "gpu_1", b"two").is_err());
    }

    #[test]
    fn missing_and_oversized_files_are_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        assert!(read(folder, "missing").is_err());
        assert!(read(&folder.join("missing"), "missing").is_err());
        fs::create_dir(folder.join("folder")).expect("a folder");
        assert!(read(folder, "folder").is_err());
        let large = fs::File::create(folder.join("large")).expect("a file");
        large.set_len(MAX_BYTES + 1).expect("a sparse file");
        assert!(read(folder, "large").is_err());
    }

    #[test]
    fn the_files_that_were_used_last_are_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let old = SystemTime::now() - 2 * WRITTEN_IN;
        // The order of names is not that of times.
        let all = ["gpu_1_b", "gpu_1_d", "gpu_1_a", "gpu_1_e", "gpu_1_c", "gpu_12_a", "other"];
        for (second, name) in all.into_iter().chain(["gpu_1_f.x.part"]).enumerate() {
            let file = fs::File::create(folder.join(name)).expect("a file");
            file.set_modified(old + Duration::from_secs(second as u64)).expect("a time");
        }
        fs::write(folder.join("gpu_1_f.y.part"), "").expect("a file");
        read(folder, "gpu_1_b").expect("it is there");
        // What was just written stays, even if the clock was set back.
        remove_old(folder, "gpu_1", "gpu_1_d").expect("a folder");
        let kept =
            ["gpu_12_a", "gpu_1_b", "gpu_1_c", "gpu_1_d", "gpu_1_e", "gpu_1_f.y.part", "other"];
        assert_eq!(names(folder), kept);
    }
}
