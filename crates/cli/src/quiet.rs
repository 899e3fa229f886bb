//! Hides messages of graphics drivers on standard error.
//!
//! Mesa and Wayland's library warn about a missing desktop session whenever devices are enumerated, even if one is found.

/// Runs `open` with standard error redirected. The captured text is dropped if `open` succeeds, and shown if it fails or
/// panics, because it may contain the reason. rullama itself writes nothing to standard error meanwhile.
#[cfg(unix)]
pub(crate) fn quietly<T, E>(open: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let Ok(mut held) = held::Held::start() else { return open() };
    let result = open();
    held.drop_text = result.is_ok();
    result
}

/// Drivers of other systems do not write to standard error.
#[cfg(not(unix))]
pub(crate) fn quietly<T, E>(open: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    open()
}

#[cfg(unix)]
mod held {
    use std::{
        fs::File,
        io::{self, Seek},
        os::fd::{AsFd, OwnedFd},
    };

    use rustix::stdio::dup2_stderr;

    /// Standard error, replaced by a file until this is dropped.
    pub(super) struct Held {
        original: OwnedFd,
        file: File,
        pub(super) drop_text: bool,
    }

    impl Held {
        pub(super) fn start() -> io::Result<Self> {
            // An unnamed file instead of a pipe, which would have to be read while drivers write.
            let file = tempfile::tempfile()?;
            let original = io::stderr().as_fd().try_clone_to_owned()?;
            dup2_stderr(&file)?;
            Ok(Self { original, file, drop_text: false })
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            // If this fails, later errors go to the file; it cannot be reported anywhere.
            let _ = dup2_stderr(&self.original);
            if !self.drop_text && self.file.rewind().is_ok() {
                let _ = io::copy(&mut self.file, &mut io::stderr());
            }
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::{
        fs::File,
        io::{self, Read, Seek, Write},
        os::fd::AsFd,
    };

    use rustix::stdio::dup2_stderr;

    use super::quietly;

    /// What is written to standard error, captured in a file.
    fn captured(work: impl FnOnce()) -> String {
        let original = io::stderr().as_fd().try_clone_to_owned().expect("a descriptor");
        let mut file: File = tempfile::tempfile().expect("a file");
        dup2_stderr(&file).expect("replaced");
        work();
        dup2_stderr(&original).expect("replaced again");
        let mut text = String::new();
        file.rewind().and_then(|()| file.read_to_string(&mut text)).expect("text");
        text
    }

    #[test]
    fn driver_messages_are_shown_only_on_failure() {
        let chatter = || write!(io::stderr(), "chatter;").expect("written");
        let say = |result: Result<(), ()>| {
            let _ = quietly(|| {
                chatter();
                result
            });
        };
        let text = captured(|| {
            say(Ok(()));
            write!(io::stderr(), "ours;").expect("written");
            say(Err(()));
            let panicked = std::panic::catch_unwind(|| {
                quietly(|| -> Result<(), ()> {
                    chatter();
                    std::panic::resume_unwind(Box::new("a driver's bug"))
                })
            });
            assert!(panicked.is_err());
        });
        assert_eq!(text, "ours;chatter;chatter;");
    }
}
