//! Files that the program keeps between runs.

use std::path::PathBuf;

/// A file in the folder where the platform wants a program's state; `None` without a home folder.
pub(crate) fn file(name: &str) -> Option<PathBuf> {
    let of =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = std::env::home_dir();
    let folder = if cfg!(windows) {
        of("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        home.map(|home| home.join("Library/Application Support"))
    } else {
        of("XDG_STATE_HOME").or_else(|| home.map(|home| home.join(".local/state")))
    };
    Some(folder?.join("rullama").join(name))
}
