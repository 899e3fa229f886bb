//! Models, sessions and answers: the boundary everything else wraps.
//!
//! Plain values go in and out; nothing here knows HTTP, JavaScript or a GPU interface.

pub mod adapters;
pub mod denoise;
pub mod drafter;
pub mod embedder;
mod error;
pub mod generate;
pub mod hearing;
mod loader;
pub mod model;
pub mod senses;
pub mod session;
mod tower;
pub mod vision;
pub mod vocabulary;

pub use denoise::Denoiser;
pub use drafter::Drafter;
pub use embedder::Embedder;
pub use error::RuntimeError;
pub use model::Model;
pub use rullama_media::{picture, sound};
pub use rullama_sampling::{options, sampling, stop};
pub use senses::Senses;
pub use session::Session;
pub use tower::SoftTokens;
