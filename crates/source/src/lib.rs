//! Byte sources: memory, files, HTTP.
//!
//! A [`ByteSource`] has a length and reads byte ranges. It knows nothing about formats.
//! Reads are futures because browsers read asynchronously; natively they are ready at once.

mod error;
#[cfg(not(target_arch = "wasm32"))]
mod file;
#[cfg(not(target_arch = "wasm32"))]
mod http;
mod memory;

use std::{future::Future, ops::Range, pin::Pin};

pub use bytes::Bytes;
pub use error::{Change, SourceError};
#[cfg(not(target_arch = "wasm32"))]
pub use file::FileSource;
#[cfg(not(target_arch = "wasm32"))]
pub use http::{HttpOptions, HttpSource, follow, web_address};
pub use memory::MemorySource;

/// A future that stays on this thread: the engine is single-threaded, natively and in the browser.
pub type Local<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Bytes that can be read by range.
pub trait ByteSource {
    /// Number of bytes.
    fn len(&self) -> u64;

    /// Whether the source has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of `range`; a short read is an error.
    fn read(&self, range: Range<u64>) -> Local<'_, Result<Bytes, SourceError>>;

    /// The name used in messages: a path, a URL, a file name.
    fn name(&self) -> &str;
}
