//! Ollama's requests, `/api/…`.

mod chat;
mod embed;
mod generate;
mod manage;

pub use chat::chat;
pub use embed::{embed, embeddings};
pub use generate::generate;
pub use manage::{
    CopyRequest, CreateRequest, NameRequest, PullRequest, ShowRequest, copy, create, delete, pull,
    show,
};
