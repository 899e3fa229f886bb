//! Adapter files of every format, valid and invalid.

mod any_bytes;
mod combining;
mod fitting;
mod gguf_files;
mod own_files;
mod peft_config;
mod peft_files;
mod support;
