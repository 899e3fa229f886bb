//! Models, sessions and generation: the API that the CLI, the server and the web bindings wrap.
//! The API uses plain values and knows no HTTP, JavaScript or GPU interface.

pub mod adapters;
mod background;
pub mod denoise;
pub mod drafter;
pub mod embedder;
mod error;
pub mod generate;
mod kv_pool;
mod loader;
pub mod media;
pub mod model;
pub mod scheduler;
pub mod session;
pub mod vocabulary;

pub use denoise::Denoiser;
pub use drafter::Drafter;
pub use embedder::Embedder;
pub use error::RuntimeError;
pub use media::{EncodedMedia, MediaEncoders, SoftTokens};
pub use model::Model;
pub use rullama_media::{audio, image};
pub use rullama_sampling::{options, sampling, stop};
pub use scheduler::Scheduler;
pub use session::Session;
