//! Which failures are retried.

use std::io::{self, ErrorKind};

use super::{HttpOptions, client::Client};
use crate::SourceError;

/// Why one attempt failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// Not retried.
    Final(SourceError),
    /// The connection was closed early.
    ConnectionLost,
    /// No data within the timeout.
    Stalled,
    /// The server is busy or failed: status 408, 429 or 5xx.
    Busy(u16),
    /// No connection.
    Unreachable(io::Error),
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        Self::Final(error)
    }
}

impl Failure {
    /// An error before the response.
    pub(super) fn before_response(name: &str, error: ureq::Error) -> Self {
        match error {
            ureq::Error::Timeout(_) => Self::Stalled,
            ureq::Error::Io(e) => match e.kind() {
                ErrorKind::UnexpectedEof
                | ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted
                | ErrorKind::BrokenPipe => Self::ConnectionLost,
                // Invalid certificates.
                ErrorKind::InvalidData => Self::bad_response(name, e),
                _ => Self::Unreachable(e),
            },
            ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => {
                Self::Unreachable(error.into_io())
            }
            other => Self::bad_response(name, other.into_io()),
        }
    }

    /// An error while the body is read.
    pub(super) fn within_body(name: &str, error: io::Error) -> Self {
        match ureq::Error::from(error) {
            ureq::Error::Timeout(_) => Self::Stalled,
            ureq::Error::Io(_) => Self::ConnectionLost,
            other => Self::bad_response(name, other.into_io()),
        }
    }

    fn bad_response(name: &str, source: io::Error) -> Self {
        Self::Final(SourceError::BadResponse { name: name.into(), source })
    }

    /// The error to report after the last attempt.
    pub(super) fn into_error(
        self,
        client: &Client,
        attempts: u32,
        received: u64,
        expected: u64,
    ) -> SourceError {
        let name = client.name.clone();
        match self {
            Self::Final(error) => error,
            Self::ConnectionLost => {
                SourceError::ConnectionLost { name, received, expected, attempts }
            }
            Self::Stalled => SourceError::Stalled { name, timeout: client.options.stall, attempts },
            Self::Busy(status) => SourceError::Status { name, status },
            Self::Unreachable(source) => SourceError::Unreachable { name, attempts, source },
        }
    }
}

/// Retries until an attempt succeeds, fails with [`Failure::Final`], or was the last; an error includes the number
/// of attempts.
pub(super) fn retry<T>(
    options: &HttpOptions,
    mut attempt: impl FnMut() -> Result<T, Failure>,
) -> Result<T, (Failure, u32)> {
    let mut count = 1;
    let mut pause = options.backoff;
    loop {
        match attempt() {
            Ok(done) => return Ok(done),
            Err(failure @ Failure::Final(_)) => return Err((failure, count)),
            Err(failure) if count >= options.attempts => return Err((failure, count)),
            Err(_) => {}
        }
        std::thread::sleep(pause);
        pause = pause.saturating_mul(2);
        count += 1;
    }
}
