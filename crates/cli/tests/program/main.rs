//! The `rullama` program from outside: arguments, standard streams, exit codes.

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
