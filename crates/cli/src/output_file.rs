//! Writes files atomically: a file appears complete or not at all, and never replaces a file the program reads. All output
//! files of the program use this module.

mod protect;
#[cfg(test)]
mod tests;

use std::{
    fs::{self, File, Metadata},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use tempfile::NamedTempFile;

pub(crate) use protect::{check, protect, protect_store};

const PREFIX: &str = ".rullama-";
const SUFFIX: &str = ".part";
/// Age from which unlocked part files are removed; younger ones may not be locked yet.
const STALE: Duration = Duration::from_secs(5);

/// Part files of this process, for [`remove_parts`].
static PARTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A file being written. [`OutputFile::finish`] gives it its name; dropped before that, it is removed.
pub(crate) struct OutputFile {
    /// Its final path, links resolved.
    target: PathBuf,
    to: BufWriter<Destination>,
}

enum Destination {
    Part(NamedTempFile, Registered),
    /// A pipe or a device such as `/dev/stdout`, which a rename would replace.
    Stream(File),
}

/// An entry of [`PARTS`], removed on drop.
struct Registered(PathBuf);

impl OutputFile {
    /// Starts a file. Commands call this before their work, to fail early if the output cannot be written.
    ///
    /// # Errors
    /// If the file must not be replaced (see [`protect`]), or its folder cannot be written to.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let start = || -> Result<Self> {
            let target = check(path)?;
            let to = match fs::metadata(&target) {
                Ok(found) if found.is_dir() => bail!("this is a folder; name a file"),
                Ok(found) if !found.is_file() => {
                    Destination::Stream(File::options().write(true).open(&target)?)
                }
                Ok(found) if found.permissions().readonly() => bail!("the file is read-only"),
                found => part(&target, found.ok())?,
            };
            Ok(Self { target, to: BufWriter::with_capacity(1 << 16, to) })
        };
        start().with_context(|| path.display().to_string())
    }

    /// Flushes the file to disk and renames it to its final name.
    ///
    /// # Errors
    /// If the disk is full or fails; an earlier file of this name is kept then.
    pub(crate) fn finish(self) -> Result<()> {
        self.publish().map(drop)
    }

    /// Like [`OutputFile::finish`], for a file that is appended to later: a log.
    ///
    /// # Errors
    /// As [`OutputFile::finish`].
    pub(crate) fn publish(self) -> Result<File> {
        let name = self.target.display().to_string();
        self.rename().context(name)
    }

    fn rename(self) -> Result<File> {
        // `into_inner` flushes.
        match self.to.into_inner().map_err(io::IntoInnerError::into_error)? {
            Destination::Stream(file) => Ok(file),
            Destination::Part(part, _registered) => {
                part.as_file().sync_all()?;
                let file = part.persist(&self.target)?;
                sync_folder(folder(&self.target))?;
                Ok(file)
            }
        }
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Part(part, _) => part.write(bytes),
            Self::Stream(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Part(part, _) => part.flush(),
            Self::Stream(file) => file.flush(),
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        parts().retain(|path| *path != self.0);
    }
}

/// Writes a whole file.
///
/// # Errors
/// As [`OutputFile::create`] and [`OutputFile::finish`].
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = OutputFile::create(path)?;
    file.write_all(bytes).with_context(|| path.display().to_string())?;
    file.finish()
}

/// Removes this process's part files before an exit without destructors. The list stays locked, so that no other thread
/// starts a file in the time that is left.
pub(crate) fn remove_parts() {
    let mut parts = parts();
    for part in parts.drain(..) {
        let _ = fs::remove_file(part);
    }
    std::mem::forget(parts);
}

fn parts() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    PARTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A part file in the target's folder, locked while the process lives, with the permissions of the file it will replace.
fn part(target: &Path, replaced: Option<Metadata>) -> io::Result<Destination> {
    let folder = folder(target);
    remove_stale(folder);
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The mode of `File::create`; the umask still applies.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    // The list is locked while the file is made: Ctrl-C in between would leave it behind.
    let mut parts = parts();
    let part = builder.tempfile_in(folder)?;
    let registered = Registered(part.path().to_owned());
    parts.push(registered.0.clone());
    drop(parts);
    if let Some(replaced) = replaced {
        part.as_file().set_permissions(replaced.permissions())?;
    }
    // Some network file systems have no locks; part files are never removed as stale there.
    let _ = part.as_file().try_lock();
    Ok(Destination::Part(part, registered))
}

/// Removes part files of killed processes: old ones without a lock.
fn remove_stale(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with(PREFIX) || !name.ends_with(SUFFIX) {
            continue;
        }
        let age = entry.metadata().and_then(|found| found.modified()).ok();
        let age = age.and_then(|modified| modified.elapsed().ok()).unwrap_or_default();
        let free = || File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok());
        if age >= STALE && free() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A rename is durable once its folder is.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}
