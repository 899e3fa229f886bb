//! The `rullama` program from outside: arguments, standard streams, exit codes.

#![expect(clippy::unwrap_used, reason = "helpers of tests, too, fail by panicking")]

mod detokenize;
mod list;
mod manners;
mod models;
mod program;
mod render;
mod server;
mod show;
mod store;
mod stored;
mod tokenize;
mod url;
mod verify;
