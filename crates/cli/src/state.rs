//! Files that the program keeps between runs.

use std::path::PathBuf;

/// A file in the folder where the platform wants a program's state; `None` without an absolute home folder.
pub(crate) fn file(name: &str) -> Option<PathBuf> {
    under("Library/Application Support", ("XDG_STATE_HOME", ".local/state"), name)
}

/// A folder where the platform wants files that a program can make again; `None` without an absolute home folder.
pub(crate) fn cache(name: &str) -> Option<PathBuf> {
    under("Library/Caches", ("XDG_CACHE_HOME", ".cache"), name)
}

/// `rullama/NAME` in the platform's folder: `macos` of the home folder there, `%LOCALAPPDATA%` on Windows, elsewhere the XDG variable or its
/// default in the home folder.
fn under(macos: &str, (variable, default): (&str, &str), name: &str) -> Option<PathBuf> {
    let of =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    // Never in the current folder.
    let home = std::env::home_dir().filter(|home| home.is_absolute());
    let folder = if cfg!(windows) {
        of("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        home.map(|home| home.join(macos))
    } else {
        of(variable).or_else(|| home.map(|home| home.join(default)))
    };
    Some(folder?.join("rullama").join(name))
}
