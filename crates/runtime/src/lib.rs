//! Models, sessions and answers: the boundary everything else wraps.
//!
//! Plain values go in and out; nothing here knows HTTP, JavaScript or a GPU interface.

pub mod adapters;
mod error;
pub mod generate;
pub mod hearing;
pub mod model;
pub mod session;
mod tower;
pub mod vision;
pub mod vocabulary;

pub use error::RuntimeError;
pub use model::Model;
pub use rullama_sampling::{options, sampling, stop};
pub use session::Session;
pub use tower::SoftTokens;
