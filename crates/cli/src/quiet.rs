//! Keeps what graphics drivers write to standard error away from our own output.
//!
//! Mesa and Wayland's library complain there about a missing desktop session whenever a device is looked for, whether or not
//! they find one.

/// Runs `open` while standard error goes elsewhere. What was written there is dropped if `open` succeeds, and shown if it fails
/// or panics, since it may say why. Nothing of ours writes to standard error in between.
#[cfg(unix)]
pub(crate) fn quietly<T, E>(open: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let Ok(mut held) = held::Held::start() else { return open() };
    let result = open();
    held.drop_text = result.is_ok();
    result
}

/// Other systems' drivers have logs of their own.
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
            // An unnamed file rather than a pipe: nobody has to read while drivers write.
            let file = tempfile::tempfile()?;
            let original = io::stderr().as_fd().try_clone_to_owned()?;
            dup2_stderr(&file)?;
            Ok(Self { original, file, drop_text: false })
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            // If this fails, later errors go to the file; there is no other place to tell.
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

    /// What reaches standard error, for which a file stands in.
    fn seen(work: impl FnOnce()) -> String {
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
    fn chatter_is_dropped_and_failures_are_not() {
        let chatter = || write!(io::stderr(), "chatter;").expect("written");
        let say = |result: Result<(), ()>| {
            let _ = quietly(|| {
                chatter();
                result
            });
        };
        let text = seen(|| {
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
