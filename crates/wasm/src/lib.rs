//! JavaScript bindings: conversions only, no logic. Plain data is passed as JSON text, as in the client's `types.ts`.

mod adapters;
mod batch;
mod bench;
mod constraint;
mod denoise;
mod device;
mod draft;
mod embedder;
mod error;
mod events;
mod hash;
mod header;
mod media;
mod metadata;
mod model;
mod options;
mod panic;
mod reply;
mod session;
mod source;
mod suite;
mod template;
mod train;
mod turns;

pub use denoise::{Denoiser, Denoising};
pub use device::Device;
pub use embedder::{Embedder, Vectors};
pub use hash::Sha256;
pub use header::Header;
pub use model::{Model, companion_bytes};
pub use session::Session;
pub use suite::OpSuite;
pub use train::Training;
