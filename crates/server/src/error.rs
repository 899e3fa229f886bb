//! What keeps a server from starting or from going on.

use std::{io, net::SocketAddr, path::PathBuf};

use rullama_gguf::GgufError;
use rullama_source::SourceError;

/// Why there is no server, or no longer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The address cannot be listened at.
    #[error("cannot listen on {address}: {source}{}", advice(.source))]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },

    /// Other machines could use the server, and nothing was said about it.
    #[error(
        "{address} can be reached from other machines: protect it with --api-key KEY or --api-key-file FILE, \
         or let everybody in with --open-to-network"
    )]
    Unprotected {
        /// The address.
        address: SocketAddr,
    },

    /// A key that is too short, or cannot be sent in a header.
    #[error("an API key must have at least {shortest} letters, digits or signs, and no blanks")]
    BadKey {
        /// Characters of the shortest key.
        shortest: usize,
    },

    /// The file of keys cannot be read.
    #[error("cannot read the API keys in {}: {source}", .path.display())]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// The file of keys has none.
    #[error("{} holds no API keys; put one in each line", .path.display())]
    NoKeys {
        /// The file.
        path: PathBuf,
    },

    /// The certificate cannot be used.
    #[error("cannot set up https: {problem}")]
    Tls {
        /// What is wrong with it.
        problem: String,
    },

    /// The system no longer lets us listen or watch for signals.
    #[error("the server stopped: {source}")]
    Stopped {
        /// What the system said.
        source: io::Error,
    },

    /// Neither a path nor `NAME=PATH`.
    #[error("{argument:?} is neither the path of a GGUF file nor NAME=PATH")]
    BadModelArgument {
        /// What was given.
        argument: String,
    },

    /// Two files under one name.
    #[error("two files are called {name}; give one of them another name with --model NAME=PATH")]
    SameName {
        /// The name.
        name: String,
    },

    /// Not the origin of a site.
    #[error("{origin:?} is not a site such as https://example.org or http://localhost:5173")]
    BadOrigin {
        /// What was given.
        origin: String,
    },

    /// A file that cannot be read.
    #[error("{0}")]
    Source(#[from] SourceError),

    /// A file that is not GGUF.
    #[error("{}: {source}", .path.display())]
    Gguf {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: GgufError,
    },

    /// A model of another family.
    #[error("{} holds a {architecture:?} model; only Gemma 3 and 4, Llama, Qwen 2 and 3, DiffusionGemma and EmbeddingGemma models are served", .path.display())]
    OtherFamily {
        /// The file.
        path: PathBuf,
        /// What it says it is.
        architecture: String,
    },
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "; another server uses this port: stop it, or choose another --port (0 picks a free one)"
        }
        io::ErrorKind::PermissionDenied => "; choose a --port above 1023",
        io::ErrorKind::AddrNotAvailable => "; --host must be an address of this machine",
        _ => "",
    }
}
