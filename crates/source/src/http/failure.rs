//! Which failures are worth another attempt.

use std::io::{self, ErrorKind};

use super::{HttpOptions, client::Client};
use crate::SourceError;

/// Why one attempt failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// Asking again would not help.
    Final(SourceError),
    /// The connection ended too early.
    Cut,
    /// Nothing came for too long.
    Stalled,
    /// The server says that it cannot answer now.
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
    /// What an error means while no answer has come yet.
    pub(super) fn before_answer(name: &str, error: ureq::Error) -> Self {
        match error {
            ureq::Error::Timeout(_) => Self::Stalled,
            ureq::Error::Io(e) => match e.kind() {
                ErrorKind::UnexpectedEof
                | ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted
                | ErrorKind::BrokenPipe => Self::Cut,
                // Certificates that do not verify end here.
                ErrorKind::InvalidData => Self::bad_answer(name, e),
                _ => Self::Unreachable(e),
            },
            ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => {
                Self::Unreachable(error.into_io())
            }
            other => Self::bad_answer(name, other.into_io()),
        }
    }

    /// What an error means in the middle of an answer.
    pub(super) fn within_answer(name: &str, error: io::Error) -> Self {
        match ureq::Error::from(error) {
            ureq::Error::Timeout(_) => Self::Stalled,
            ureq::Error::Io(_) => Self::Cut,
            other => Self::bad_answer(name, other.into_io()),
        }
    }

    fn bad_answer(name: &str, source: io::Error) -> Self {
        Self::Final(SourceError::BadAnswer { name: name.into(), source })
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
            Self::Cut => SourceError::Cut { name, received, expected, attempts },
            Self::Stalled => SourceError::Stalled { name, timeout: client.options.stall, attempts },
            Self::Busy(status) => SourceError::Status { name, status },
            Self::Unreachable(source) => SourceError::Unreachable { name, attempts, source },
        }
    }
}

/// Makes attempts until one succeeds, one fails for good, or all are used up; a failure comes with their number.
pub(super) fn retry<T>(
    options: &HttpOptions,
    mut attempt: impl FnMut() -> Result<T, Failure>,
) -> Result<T, (Failure, u32)> {
    let mut made = 1;
    let mut pause = options.backoff;
    loop {
        match attempt() {
            Ok(done) => return Ok(done),
            Err(failure @ Failure::Final(_)) => return Err((failure, made)),
            Err(failure) if made >= options.attempts => return Err((failure, made)),
            Err(_) => {}
        }
        std::thread::sleep(pause);
        pause = pause.saturating_mul(2);
        made += 1;
    }
}
