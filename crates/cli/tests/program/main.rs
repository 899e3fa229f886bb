//! The `rullama` program from outside: arguments, standard streams, exit codes.

#![expect(clippy::unwrap_used, reason = "test helpers fail by panicking")]

mod adapter;
mod bench;
mod decoders;
mod demo;
#[cfg(unix)]
mod deploy;
mod detokenize;
mod eval;
mod eval_media;
mod family;
#[cfg(unix)]
mod interrupt;
mod list;
mod manners;
mod models;
mod packed;
mod perplexity;
#[cfg(target_os = "linux")]
mod pipelines;
mod program;
mod pull;
#[allow(dead_code, reason = "shared with the tests of `rullama-pull`")]
#[path = "../../../pull/tests/it/registry.rs"]
mod registry;
#[cfg(unix)]
mod remote;
mod render;
mod run;
mod run_media;
mod serve;
mod server;
mod show;
mod store;
mod stored;
mod tokenize;
mod train;
mod tune;
mod url;
mod verify;
