//! Adapters of every kind, good and bad.

mod any_bytes;
mod combining;
mod fitting;
mod gguf_files;
mod own_files;
mod peft_config;
mod peft_files;
mod support;
