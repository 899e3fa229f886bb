//! Models, sessions and sampling: the boundary everything else wraps.
//!
//! Plain values go in and out; nothing here knows HTTP, JavaScript or a GPU interface.

mod error;
pub mod generate;
pub mod hearing;
pub mod model;
pub mod options;
pub mod sampling;
pub mod session;
pub mod stop;
mod tower;
pub mod vision;
pub mod vocabulary;

pub use error::RuntimeError;
pub use model::Model;
pub use session::Session;
pub use tower::SoftTokens;
