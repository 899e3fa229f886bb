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
    #[error("{} holds a {architecture:?} model; only gemma4 models are served", .path.display())]
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
