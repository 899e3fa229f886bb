//! Work for a thread of its own while weights are read; without threads, as in a browser, it is done at once.

#[cfg(not(target_arch = "wasm32"))]
use std::{
    panic::resume_unwind,
    sync::mpsc,
    thread::{Builder, JoinHandle},
};

/// Work in progress. Dropping it detaches the thread.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Debug)]
pub(crate) enum Background<T> {
    /// On a thread.
    Thread(JoinHandle<T>),
    /// Done, since the system has no more threads.
    Done(T),
}

#[cfg(not(target_arch = "wasm32"))]
impl<T: Send + 'static> Background<T> {
    /// Starts the work.
    pub(crate) fn start<F: FnOnce() -> T + Send + 'static>(work: F) -> Self {
        // The thread gets its work when it exists: a closure that cannot be given to a thread is lost.
        let (sender, receiver) = mpsc::sync_channel::<F>(1);
        let given = move || receiver.recv().expect("the work is sent at once")();
        match Builder::new().name("background".into()).spawn(given) {
            Ok(thread) => {
                let _ = sender.send(work);
                Self::Thread(thread)
            }
            Err(_) => Self::Done(work()),
        }
    }

    /// Waits for the result. A panic of the work continues here.
    pub(crate) fn finish(self) -> T {
        match self {
            Self::Thread(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Self::Done(result) => result,
        }
    }
}

/// A result.
#[cfg(target_arch = "wasm32")]
#[derive(Debug)]
pub(crate) struct Background<T>(T);

#[cfg(target_arch = "wasm32")]
impl<T> Background<T> {
    /// Does the work.
    pub(crate) fn start(work: impl FnOnce() -> T) -> Self {
        Self(work())
    }

    /// The result.
    pub(crate) fn finish(self) -> T {
        self.0
    }
}
