//! Arguments.

use std::path::PathBuf;

use clap::{Args as Group, Parser, Subcommand, ValueEnum};
use rullama_store::Digest;

use crate::{
    adapter::AdapterCommand,
    bench::BenchArgs,
    eval::EvalArgs,
    load::size,
    ops::OpsCommand,
    perplexity::PerplexityArgs,
    run::RunArgs,
    serve::ServeArgs,
    train::{CompareArgs, TrainArgs},
};

const AFTER_HELP: &str = "\
MODEL is a name in Ollama's store (gemma4:e2b), the path of a GGUF file, or an http(s) URL of one.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no such model, 4 the file is broken or not supported,
5 the network failed, 6 a checksum does not match, 7 the GPU is missing, was lost or has no room, 130 interrupted.";

/// Runs Gemma 4 models from Ollama's store, from files and over HTTP.
#[derive(Debug, Parser)]
#[command(name = "rullama", version, after_help = AFTER_HELP, arg_required_else_help = true)]
pub(crate) struct Args {
    /// Look for models in this folder instead of Ollama's usual places
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) store: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Talk to a model, or have one prompt answered
    Run(Box<RunArgs>),
    /// Serve the app and the models of this machine to a browser
    Serve(ServeArgs),
    /// List the models of Ollama's store
    #[command(visible_alias = "ls")]
    List(ListArgs),
    /// Show what is in a model
    Show(ShowArgs),
    /// Turn text into token ids
    Tokenize(TokenizeArgs),
    /// Turn token ids into text
    Detokenize(DetokenizeArgs),
    /// Turn messages into the prompt a model sees
    Render(RenderArgs),
    /// Check that a model's files are whole and unchanged
    Verify(VerifyArgs),
    /// Measure how fast a model reads and writes on this machine
    Bench(BenchArgs),
    /// Write a model's logits for given tokens to a file
    Eval(EvalArgs),
    /// Measure how well a model predicts a text
    Perplexity(PerplexityArgs),
    /// Train an adapter on your own data
    Train(Box<TrainArgs>),
    /// Compare how well a model predicts data with an adapter and without
    EvalAdapter(CompareArgs),
    /// Look at LoRA adapters, merge them into a model, or change their format
    #[command(subcommand)]
    Adapter(AdapterCommand),
    /// Test and time the GPU kernels on this machine
    #[command(subcommand)]
    Ops(OpsCommand),
}

impl Command {
    /// Whether output, errors included, is for a program.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::List(args) => args.json,
            Self::Show(args) => args.json,
            Self::Tokenize(args) => args.json,
            Self::Detokenize(args) => args.json,
            Self::Render(args) => args.json,
            Self::Verify(args) => args.json,
            Self::Run(args) => args.json,
            Self::Serve(args) => args.json(),
            Self::Bench(args) => args.json,
            Self::Eval(args) => args.json,
            Self::Perplexity(args) => args.json,
            Self::Train(args) => args.json,
            Self::EvalAdapter(args) => args.json,
            Self::Adapter(command) => command.json(),
            Self::Ops(command) => command.json(),
        }
    }
}

#[derive(Debug, Group)]
pub(crate) struct ListArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Group)]
pub(crate) struct ShowArgs {
    /// Name, path or URL
    pub(crate) model: String,
    /// Also list every tensor
    #[arg(long)]
    pub(crate) tensors: bool,
    /// Also list all metadata
    #[arg(long)]
    pub(crate) metadata: bool,
    /// Print arrays of metadata whole
    #[arg(long)]
    pub(crate) full: bool,
    /// Context the memory is estimated for
    #[arg(long, value_name = "TOKENS")]
    pub(crate) ctx: Option<usize>,
    /// Estimate the memory as `run --gpu-memory` would have it
    #[arg(long, value_name = "BYTES", value_parser = size)]
    pub(crate) gpu_memory: Option<u64>,
    /// Estimate the memory as `run --host-experts` would have it
    #[arg(long, value_name = "LAYERS")]
    pub(crate) host_experts: Option<usize>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Group)]
pub(crate) struct TokenizeArgs {
    /// Name, path or URL
    pub(crate) model: String,
    /// The text; without it, standard input is read
    #[arg(conflicts_with = "stdin", allow_hyphen_values = true)]
    pub(crate) text: Option<String>,
    /// Read the text from standard input, to its end
    #[arg(long)]
    pub(crate) stdin: bool,
    /// Recognise control tokens such as <|turn> in the text
    #[arg(long)]
    pub(crate) special: bool,
    /// Put the beginning-of-sequence token in front, unless it is there
    #[arg(long)]
    pub(crate) bos: bool,
    /// Print {"ids":[…],"pieces":[…]}
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Group)]
pub(crate) struct DetokenizeArgs {
    /// Name, path or URL
    pub(crate) model: String,
    /// The ids, separated by blanks or commas; without them, standard input is read
    #[arg(conflicts_with = "stdin", allow_negative_numbers = true)]
    pub(crate) ids: Vec<String>,
    /// Read the ids from standard input, to its end
    #[arg(long)]
    pub(crate) stdin: bool,
    /// Show control tokens such as <|turn> in the text
    #[arg(long)]
    pub(crate) special: bool,
    /// Print {"text":…,"pieces":[…]}
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Group)]
pub(crate) struct RenderArgs {
    /// Write the prompt this model wants: name, path or URL
    #[arg(required_unless_present = "family", conflicts_with = "family")]
    pub(crate) model: Option<String>,
    /// Write the prompt of a template family instead
    #[arg(long)]
    pub(crate) family: Option<FamilyArg>,
    /// The conversation as JSON; without it, standard input is read
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,
    /// End with an opened model turn where the official templates forget it (after text, call and result in one message)
    #[arg(long)]
    pub(crate) repair: bool,
    /// Print {"prompt":…,"spans":[…]}; spans say which text is trusted
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum FamilyArg {
    /// E2B and E4B
    Small,
    /// 12B, 26B-A4B and 31B
    Large,
}

#[derive(Debug, Group)]
pub(crate) struct VerifyArgs {
    /// Name, path or URL
    pub(crate) model: String,
    /// The checksum a file should have, as 64 hex digits
    #[arg(long, value_name = "HEX", value_parser = digest)]
    pub(crate) sha256: Option<Digest>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn digest(text: &str) -> Result<Digest, &'static str> {
    let hex = text.strip_prefix("sha256:").unwrap_or(text);
    Digest::parse(&format!("sha256:{hex}")).ok_or("a SHA-256 has 64 hex digits")
}
