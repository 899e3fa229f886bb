//! What a server is told at its start.

use std::{
    fmt,
    net::SocketAddr,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};

use axum::http::{HeaderValue, Uri};
use rullama_pull::PullOptions;

use crate::{ApiKeys, ApiLimits, Limits, Log, ServerError, Tls, engine::Engine};

/// What to serve, where and to whom.
#[derive(Clone)]
pub struct Options {
    /// Where to listen; port 0 takes any free one.
    pub address: SocketAddr,
    /// A second address to listen at where it is free, such as Ollama's.
    pub also: Option<SocketAddr>,
    /// Folders that may hold a store, the first first. Missing ones are no error.
    pub stores: Vec<PathBuf>,
    /// Files to serve beside the store's models.
    pub files: Vec<PlainFile>,
    /// Other sites whose pages may read models.
    pub origins: Vec<Origin>,
    /// Names this machine is called by, beside `localhost` and its addresses.
    pub allowed_hosts: Vec<String>,
    /// Origins whose pages may use the APIs, as `OLLAMA_ORIGINS` has them: each with one `*` at most.
    pub origin_patterns: Vec<String>,
    /// What connections may take.
    pub limits: Limits,
    /// What API requests may take.
    pub api_limits: ApiLimits,
    /// What generates; without it the APIs only list models.
    pub engine: Option<Arc<dyn Engine>>,
    /// How models are pulled; without it they are not.
    pub pull: Option<PullOptions>,
    /// Keys, one of which requests to the APIs must carry.
    pub keys: ApiKeys,
    /// Whether an address that other machines can reach may be used without keys.
    pub open_to_network: bool,
    /// Where the certificate for https comes from; without it the server speaks plain http.
    pub tls: Option<Tls>,
    /// Receives a line per request.
    pub log: Option<Log>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("address", &self.address)
            .field("stores", &self.stores)
            .field("files", &self.files)
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// Listens at `address` and serves nothing but the app.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            also: None,
            stores: vec![],
            files: vec![],
            origins: vec![],
            allowed_hosts: vec![],
            origin_patterns: vec![],
            limits: Limits::default(),
            api_limits: ApiLimits::default(),
            engine: None,
            pull: None,
            keys: ApiKeys::default(),
            open_to_network: false,
            tls: None,
            log: None,
        }
    }
}

/// A GGUF file to serve under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainFile {
    /// What it is called in the list.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
}

/// `NAME=PATH`, or a path whose file name without its ending is the name.
impl FromStr for PlainFile {
    type Err = ServerError;

    fn from_str(text: &str) -> Result<Self, ServerError> {
        let (name, path) = match text.split_once('=') {
            // An equals sign in a folder's name is part of a path.
            Some((name, path)) if !name.contains(['/', '\\']) => (name.to_owned(), path),
            _ => (stem(Path::new(text)), text),
        };
        let odd = name.is_empty() || name == "." || name == ".." || name.len() > 200;
        if odd || name.contains(char::is_control) || path.is_empty() {
            return Err(ServerError::BadModelArgument { argument: text.into() });
        }
        Ok(Self { name, path: path.into() })
    }
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Another site, as browsers name it: scheme, host and, where it is not the usual one, port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub(crate) value: HeaderValue,
}

impl FromStr for Origin {
    type Err = ServerError;

    fn from_str(text: &str) -> Result<Self, ServerError> {
        let bad = || ServerError::BadOrigin { origin: text.into() };
        let uri: Uri = text.parse().map_err(|_| bad())?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(bad());
        };
        let usual_port = match scheme {
            "http" => ":80",
            "https" => ":443",
            _ => return Err(bad()),
        };
        if uri.path().len() > 1 || uri.query().is_some() || authority.as_str().contains('@') {
            return Err(bad());
        }
        let authority = authority.as_str().to_ascii_lowercase();
        let authority = authority.strip_suffix(usual_port).unwrap_or(&authority);
        let value = HeaderValue::try_from(format!("{scheme}://{authority}")).map_err(|_| bad())?;
        Ok(Self { value })
    }
}

#[cfg(test)]
mod tests {
    use super::{Origin, PlainFile};

    #[test]
    fn files_and_their_names() {
        for (argument, name, path) in [
            ("tiny.gguf", "tiny", "tiny.gguf"),
            ("models/Tiny.Q4.gguf", "Tiny.Q4", "models/Tiny.Q4.gguf"),
            ("demo=tiny.gguf", "demo", "tiny.gguf"),
            ("gemma4:e2b=/m/a=b.gguf", "gemma4:e2b", "/m/a=b.gguf"),
            ("./a=b.gguf", "a=b", "./a=b.gguf"),
            ("a b", "a b", "a b"),
        ] {
            let file: PlainFile = argument.parse().unwrap();
            assert_eq!((file.name.as_str(), file.path.to_str().unwrap()), (name, path));
        }
        for argument in ["", "=x.gguf", "demo=", "..=x", "/", "a\nb=x"] {
            assert!(argument.parse::<PlainFile>().is_err(), "{argument}");
        }
    }

    #[test]
    fn origins_are_written_as_browsers_do() {
        for (given, origin) in [
            ("https://example.org", "https://example.org"),
            ("https://Example.org:443/", "https://example.org"),
            ("http://localhost:5173", "http://localhost:5173"),
            ("http://h:80", "http://h"),
        ] {
            assert_eq!(given.parse::<Origin>().unwrap().value, origin);
        }
        for given in
            ["", "*", "null", "example.org", "ftp://h", "https://h/path", "https://me@h", "http://"]
        {
            assert!(given.parse::<Origin>().is_err(), "{given}");
        }
    }
}
