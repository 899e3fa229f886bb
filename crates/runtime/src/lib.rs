//! Models, sessions and sampling: the boundary everything else wraps.
//!
//! Plain values go in and out; nothing here knows HTTP, JavaScript or a GPU interface.

pub mod options;
pub mod sampling;
pub mod stop;
pub mod vocabulary;
