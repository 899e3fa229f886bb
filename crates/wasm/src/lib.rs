//! JavaScript bindings: conversions only, no logic. Plain data crosses as JSON text, in the words of the client's `types.ts`.

mod adapters;
mod bench;
mod device;
mod error;
mod events;
mod hash;
mod model;
mod options;
mod panic;
mod senses;
mod session;
mod source;
mod suite;
mod train;

pub use device::Device;
pub use hash::Sha256;
pub use model::{Model, inspect};
pub use session::Session;
pub use suite::OpSuite;
pub use train::Training;
