//! Default folders of the store on each platform.

use std::{
    ffi::{OsStr, OsString},
    path::PathBuf,
};

/// Input of the search, passed by the caller: this crate reads no environment.
#[derive(Debug, Clone)]
pub struct Environment {
    /// The variable `OLLAMA_MODELS`.
    pub ollama_models: Option<OsString>,
    /// The user's home folder.
    pub home: Option<PathBuf>,
    /// The operating system.
    pub platform: Platform,
}

/// Operating systems with different default folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    /// Linux and similar systems.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

impl Platform {
    /// The system this was compiled for.
    pub const CURRENT: Self = if cfg!(target_os = "macos") {
        Self::MacOs
    } else if cfg!(target_os = "windows") {
        Self::Windows
    } else {
        Self::Linux
    };
}

/// Folders that may hold a store, the most likely first: the one of the variable alone, if it names one.
pub fn candidates(environment: &Environment) -> Vec<PathBuf> {
    let chosen = environment.ollama_models.as_deref().map(trimmed).map(PathBuf::from);
    if let Some(chosen) = chosen.filter(|folder| !folder.as_os_str().is_empty()) {
        return vec![chosen];
    }
    let home = environment.home.as_ref().filter(|home| !home.as_os_str().is_empty());
    let own = home.map(|home| home.join(".ollama").join("models"));
    // The home of the user that the official installer creates for the service.
    let service = match environment.platform {
        Platform::Linux => Some(PathBuf::from("/usr/share/ollama/.ollama/models")),
        Platform::MacOs | Platform::Windows => None,
    };
    own.into_iter().chain(service).collect()
}

/// Strips surrounding white space, then quotes: `set X="C:\y"` keeps them on some systems.
fn trimmed(value: &OsStr) -> &OsStr {
    match value.to_str() {
        Some(text) => OsStr::new(text.trim().trim_matches(['"', '\''])),
        None => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(models: Option<&str>, home: Option<&str>, platform: Platform, expected: &[&str]) {
        let environment = Environment {
            ollama_models: models.map(OsString::from),
            home: home.map(PathBuf::from),
            platform,
        };
        let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
        assert_eq!(candidates(&environment), expected, "{environment:?}");
    }

    const SERVICE: &str = "/usr/share/ollama/.ollama/models";

    #[test]
    fn default_folders_by_platform() {
        use Platform::{Linux, MacOs, Windows};
        check(None, Some("/home/me"), Linux, &["/home/me/.ollama/models", SERVICE]);
        check(None, Some("/Users/me"), MacOs, &["/Users/me/.ollama/models"]);
        check(None, Some("C:/Users/me"), Windows, &["C:/Users/me/.ollama/models"]);
        check(None, None, Linux, &[SERVICE]);
        check(None, None, MacOs, &[]);
        check(None, Some(""), Windows, &[]);
    }

    #[test]
    fn the_variable_replaces_the_default_folders() {
        check(Some("/models"), Some("/home/me"), Platform::Linux, &["/models"]);
        check(Some("/models"), None, Platform::MacOs, &["/models"]);
        check(Some(SERVICE), None, Platform::Linux, &[SERVICE]);
    }

    #[test]
    fn white_space_and_then_quotes_are_stripped_from_the_variable() {
        for (value, meant) in [
            (" /m \n", "/m"),
            ("\"/m\"", "/m"),
            ("  '/m'  ", "/m"),
            ("\"'/m", "/m"),
            ("\" /m \"", " /m "),
            ("/with space/m", "/with space/m"),
            (r#""D:\models""#, r"D:\models"),
        ] {
            check(Some(value), None, Platform::Windows, &[meant]);
        }
        for value in ["", "  ", "\"\"", " '' "] {
            check(Some(value), Some("/h"), Platform::MacOs, &["/h/.ollama/models"]);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_path_that_is_not_unicode_is_kept() {
        use std::os::unix::ffi::OsStringExt;
        let value = OsString::from_vec(b"/m\xff".to_vec());
        let environment = Environment {
            ollama_models: Some(value.clone()),
            home: None,
            platform: Platform::MacOs,
        };
        assert_eq!(candidates(&environment), [PathBuf::from(value)]);
    }
}
