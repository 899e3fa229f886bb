//! Work that needs no device, while another thread reads weights; without threads, as in a browser, it is done at once.

/// Work in progress. It is not waited for if this is dropped.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Debug)]
pub(crate) struct Background<T>(std::thread::JoinHandle<T>);

#[cfg(not(target_arch = "wasm32"))]
impl<T: Send + 'static> Background<T> {
    /// Starts the work.
    pub(crate) fn start(work: impl FnOnce() -> T + Send + 'static) -> Self {
        Self(std::thread::spawn(work))
    }

    /// Waits for the result. A panic of the work goes on here.
    pub(crate) fn finish(self) -> T {
        self.0.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
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
