//! `rullama adapter`: show, merge and convert LoRA adapters.

mod convert;
mod merge;
mod show;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args as Group, Subcommand};

use crate::{adapters::AdapterArgs, locate::Stores};

#[derive(Debug, Subcommand)]
pub(crate) enum AdapterCommand {
    /// Show an adapter, and whether it fits a model
    Show(ShowArgs),
    /// Merge adapters into a model's weights
    Merge(MergeArgs),
    /// Convert an adapter to a PEFT folder or a GGUF file
    Convert(ConvertArgs),
}

impl AdapterCommand {
    /// Whether to print JSON, including errors.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Show(args) => args.json,
            Self::Merge(args) => args.json,
            Self::Convert(args) => args.json,
        }
    }
}

#[derive(Debug, Group)]
pub(crate) struct ShowArgs {
    /// PEFT folder, safetensors file or GGUF file
    path: PathBuf,
    /// Also check that it fits this model: name, path or URL
    #[arg(long)]
    model: Option<String>,
    /// Also list every tensor it changes
    #[arg(long)]
    tensors: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Group)]
pub(crate) struct MergeArgs {
    /// Name, path or URL
    model: String,
    #[command(flatten)]
    adapters: AdapterArgs,
    /// Output GGUF file
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Store changed tensors as f32, f16, bf16 or q8_0 instead of their own type
    #[arg(long = "type", value_name = "TYPE", value_parser = merge::dtype)]
    dtype: Option<rullama_gguf::DType>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Group)]
pub(crate) struct ConvertArgs {
    /// PEFT folder, safetensors file or GGUF file
    path: PathBuf,
    /// Output: a .gguf file, or a folder for PEFT
    #[arg(long, value_name = "PATH")]
    out: PathBuf,
    /// Base model name for PEFT; taken from the adapter if not given
    #[arg(long, value_name = "NAME")]
    base: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn adapter(stores: &Stores, command: &AdapterCommand) -> Result<()> {
    match command {
        AdapterCommand::Show(args) => show::show(stores, args),
        AdapterCommand::Merge(args) => merge::merge(stores, args),
        AdapterCommand::Convert(args) => convert::convert(args),
    }
}
