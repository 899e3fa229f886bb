//! Arguments.

use std::path::PathBuf;

use clap::{ArgAction, Args as Group, Parser, Subcommand, ValueEnum};
use rullama_store::Digest;

use crate::{
    adapter::AdapterCommand,
    bench::BenchArgs,
    embed::EmbedArgs,
    eval::EvalArgs,
    load::{DeviceArgs, size},
    manage::{CopyArgs, MissingArgs, PsArgs, PullArgs, RemoveArgs, StopArgs},
    ops::OpsCommand,
    perplexity::PerplexityArgs,
    run::RunArgs,
    serve::ServeArgs,
    towers::TowersArgs,
    train::{CompareArgs, TrainArgs},
    tune::TuneArgs,
};

const AFTER_HELP: &str = "\
MODEL is a name in Ollama's store (gemma4:e2b), the path of a GGUF file, an http(s) URL of one, or demo, a tiny built-in model.

Exit codes: 0 success, 1 failure, 2 usage error, 3 model or file not found, 4 file damaged or not supported,
5 network failure, 6 checksum mismatch, 7 no GPU, GPU lost or out of GPU memory, 130 interrupted.";

/// Run Gemma, Llama and Qwen models from Ollama's store, GGUF files and URLs
#[derive(Debug, Parser)]
#[command(name = "rullama", version, disable_version_flag = true, after_help = AFTER_HELP, arg_required_else_help = true)]
pub(crate) struct Args {
    /// Print the version
    #[arg(short = 'v', short_alias = 'V', long, action = ArgAction::Version)]
    version: Option<bool>,
    /// Look for models in this folder instead of Ollama's usual places
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) store: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a model: chat, or answer one prompt
    Run(Box<RunArgs>),
    /// Serve the chat app, and models to clients of Ollama, OpenAI and Anthropic
    Serve(Box<ServeArgs>),
    /// Download a model into Ollama's store
    Pull(PullArgs),
    /// Delete models from Ollama's store
    Rm(RemoveArgs),
    /// Give a model a second name
    Cp(CopyArgs),
    /// List the models that the running server has loaded
    Ps(PsArgs),
    /// Unload a model from the running server
    Stop(StopArgs),
    /// List models in Ollama's store
    #[command(visible_alias = "ls")]
    List(ListArgs),
    /// Show a model's architecture, formats, memory use and metadata
    Show(ShowArgs),
    /// Convert text to token ids
    Tokenize(TokenizeArgs),
    /// Convert token ids to text
    Detokenize(DetokenizeArgs),
    /// Render messages with a model's chat template
    Render(RenderArgs),
    /// Check a model's files: checksums, structure and values
    Verify(VerifyArgs),
    /// Benchmark prefill and decode speed
    Bench(BenchArgs),
    /// Measure how this GPU runs a model fastest, and keep the result for later runs
    Tune(TuneArgs),
    /// Benchmark the vision and audio encoders
    BenchTowers(TowersArgs),
    /// Compute embeddings of texts
    Embed(EmbedArgs),
    /// Write a model's logits for given tokens to a safetensors file
    Eval(EvalArgs),
    /// Measure a model's perplexity on a text
    Perplexity(PerplexityArgs),
    /// Train a LoRA adapter on your own data
    Train(Box<TrainArgs>),
    /// Compare a model's loss on data with and without an adapter
    EvalAdapter(CompareArgs),
    /// Inspect, merge or convert LoRA adapters
    #[command(subcommand)]
    Adapter(AdapterCommand),
    /// Test and time the GPU kernels on this machine
    #[command(subcommand)]
    Ops(OpsCommand),
    /// Ollama's, which rullama does not have
    #[command(hide = true)]
    Create(MissingArgs),
    /// Ollama's, which rullama does not have
    #[command(hide = true)]
    Push(MissingArgs),
    /// Ollama's, which rullama does not have
    #[command(hide = true, alias = "signout")]
    Signin(MissingArgs),
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
            Self::Pull(args) => args.json,
            Self::Ps(args) => args.json,
            Self::Rm(_) | Self::Cp(_) | Self::Stop(_) => false,
            Self::Create(_) | Self::Push(_) | Self::Signin(_) => false,
            Self::Bench(args) => args.json,
            Self::Tune(args) => args.json,
            Self::BenchTowers(args) => args.json,
            Self::Embed(args) => args.json,
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
    /// Print metadata arrays in full
    #[arg(long)]
    pub(crate) full: bool,
    /// Also list the GPU dispatches of prefill and decode: kernel, tiling, grid, layouts
    #[arg(long)]
    pub(crate) plan: bool,
    /// Context length for the memory estimate
    #[arg(long, value_name = "TOKENS")]
    pub(crate) ctx: Option<usize>,
    /// Estimate memory as with `run --gpu-memory`
    #[arg(long, value_name = "BYTES", value_parser = size)]
    pub(crate) gpu_memory: Option<u64>,
    /// Estimate memory as with `run --host-experts`
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
    /// Text to tokenize; read from standard input if not given
    #[arg(conflicts_with = "stdin", allow_hyphen_values = true)]
    pub(crate) text: Option<String>,
    /// Read the text from standard input
    #[arg(long)]
    pub(crate) stdin: bool,
    /// Recognise control tokens such as <|turn> in the text
    #[arg(long)]
    pub(crate) special: bool,
    /// Prepend the beginning-of-sequence token if it is missing
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
    /// Token ids, separated by spaces or commas; read from standard input if not given
    #[arg(conflicts_with = "stdin", allow_negative_numbers = true)]
    pub(crate) ids: Vec<String>,
    /// Read the ids from standard input
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
    /// Model whose template to use: name, path or URL
    #[arg(required_unless_present = "family", conflicts_with = "family")]
    pub(crate) model: Option<String>,
    /// Use the template of this model family instead
    #[arg(long)]
    pub(crate) family: Option<FamilyArg>,
    /// Conversation as JSON; read from standard input if not given
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,
    /// Open a model turn at the end where the official templates omit it (after text, call and result in one message)
    #[arg(long)]
    pub(crate) repair: bool,
    /// Print {"prompt":…,"spans":[…]}; each span says whether its text is trusted
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
    /// Expected SHA-256 of the file, as 64 hex digits
    #[arg(long, value_name = "HEX", value_parser = digest)]
    pub(crate) sha256: Option<Digest>,
    /// Also load the model and compare its answers with a reference's, for published files
    #[arg(long)]
    pub(crate) answers: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
}

fn digest(text: &str) -> Result<Digest, &'static str> {
    let hex = text.strip_prefix("sha256:").unwrap_or(text);
    Digest::parse(&format!("sha256:{hex}")).ok_or("a SHA-256 has 64 hex digits")
}
