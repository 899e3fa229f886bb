//! `rullama run`: one prompt answered, or a chat.

mod answer;
mod chat;
mod command;
mod diffuse;
mod dropped;
mod format;
mod input;
mod sampling;
mod saved;
mod screen;
mod talk;
mod timing;

use std::io::{IsTerminal, Read};

use anyhow::{Context, Error, Result, bail};
use clap::Args as Group;
use rullama_models::gemma4::diffusion::DiffusionConfig;
use rullama_runtime::{RuntimeError, generate::Finish};
use rullama_store::StoreError;
use serde_json::json;

use crate::{
    adapters::AdapterArgs,
    draft::DraftArgs,
    interrupt::{self, Interrupted},
    load::DeviceArgs,
    locate::{DEMO_NAME, Stores},
    media::MediaArgs,
    output::print_json,
};
use chat::Chat;
use diffuse::CanvasArgs;
use format::Format;
use sampling::SamplingArgs;
use screen::Screen;

#[derive(Debug, Group)]
pub(crate) struct RunArgs {
    /// Name, path or URL; `demo` is the tiny model that comes with the program
    #[arg(default_value = DEMO_NAME)]
    pub(crate) model: String,
    /// What to answer; without it, standard input is answered, or a chat begins on a terminal
    prompt: Vec<String>,
    /// What the model is to be; replaces the system message the model comes with
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// Let the model think before it answers
    #[arg(long, conflicts_with = "no_think")]
    think: bool,
    /// Let the model answer at once, which is the default
    #[arg(long)]
    no_think: bool,
    /// Do not show thoughts
    #[arg(long)]
    hide_thinking: bool,
    /// Continue the prompt as it is, without the model's template
    #[arg(long, conflicts_with_all = ["system", "think", "image", "audio", "video"])]
    raw: bool,
    /// Hold the answer to JSON: `json` for any object, or a JSON schema, or a file with one. Thoughts stay free
    #[arg(long, value_name = "json|SCHEMA", value_parser = Format::parse)]
    format: Option<Format>,
    /// Tokens that prompts and answers may have together; 4096 unless the model comes with another number
    #[arg(long, value_name = "TOKENS")]
    ctx: Option<usize>,
    /// Show times, rates and memory after each answer
    #[arg(long)]
    verbose: bool,
    /// Chat line by line, though standard input is no terminal
    #[arg(long, conflicts_with_all = ["prompt", "raw", "json"])]
    chat: bool,
    /// Do not remember what was typed for the next chat
    #[arg(long)]
    no_history: bool,
    /// Print the answer as JSON when it is complete
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    media: MediaArgs,
    #[command(flatten)]
    adapters: AdapterArgs,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    draft: DraftArgs,
    #[command(flatten)]
    canvas: CanvasArgs,
    #[command(flatten)]
    device: DeviceArgs,
}

pub(crate) fn run(stores: &Stores, args: &RunArgs) -> Result<()> {
    let (_, gguf) = stores.open(&args.model).map_err(|error| perhaps_a_prompt(error, args))?;
    let prompt = if args.chat { None } else { prompt(args)? };
    interrupt::watch();
    if DiffusionConfig::is_diffusion(&gguf) {
        let Some(prompt) = prompt else { bail!("give a prompt: this model answers one at a time") };
        return diffuse::once(gguf, &prompt, args);
    }
    drop(gguf);
    let mut chat = Chat::start(stores, args)?;
    match prompt {
        Some(prompt) => once(&mut chat, &prompt, args),
        None => {
            let mut lines = input::lines(!args.no_history)?;
            talk::talk(&mut chat, lines.as_mut(), &mut Screen::new(args.hide_thinking))
        }
    }
}

/// A prompt alone is taken for the model's name: says how to say both.
fn perhaps_a_prompt(error: Error, args: &RunArgs) -> Error {
    let unknown = matches!(
        error.downcast_ref(),
        Some(StoreError::NotFound { .. } | StoreError::NoStore { .. } | StoreError::BadName { .. })
    );
    if !unknown || !args.prompt.is_empty() {
        return error;
    }
    let model = &args.model;
    error.context(format!(
        "{model:?} is taken for the model; did you mean `rullama run {DEMO_NAME} {model:?}`, with any model's name for {DEMO_NAME}?"
    ))
}

/// What is to be answered: arguments after what comes through a pipe, as Ollama has it; nothing on a bare terminal.
fn prompt(args: &RunArgs) -> Result<Option<String>> {
    let mut parts = args.prompt.clone();
    let mut stdin = std::io::stdin();
    if !stdin.is_terminal() {
        let mut text = String::new();
        stdin.read_to_string(&mut text).context("standard input")?;
        if !text.is_empty() {
            parts.insert(0, text);
        }
    } else if parts.is_empty() && !args.raw && !args.json {
        return Ok(None);
    }
    let prompt = parts.join(" ");
    let nothing = prompt.trim().is_empty() && args.media.files.is_empty();
    if nothing { Err(RuntimeError::EmptyPrompt.into()) } else { Ok(Some(prompt)) }
}

/// Answers one prompt.
fn once(chat: &mut Chat, prompt: &str, args: &RunArgs) -> Result<()> {
    let mut screen = if args.json { Screen::silent() } else { Screen::new(args.hide_thinking) };
    let answer = match args.raw {
        true => chat.complete(prompt, &mut screen)?,
        false => chat.say(prompt, &[], &mut screen)?,
    };
    screen.end()?;
    if args.json {
        let (done, times) = (answer.done, answer.times);
        print_json(&json!({
            "model": args.model,
            "text": answer.text,
            "thinking": answer.thinking,
            "finish": done.finish.reason(),
            "prompt_tokens": done.prompt_tokens,
            "cached_tokens": done.cached_tokens,
            "answer_tokens": done.answer_tokens,
            "load_seconds": times.load.as_secs_f64(),
            "media_seconds": times.media.as_secs_f64(),
            "prompt_seconds": times.prompt.as_secs_f64(),
            "answer_seconds": times.answer.as_secs_f64(),
            "gpu_bytes": chat.gpu_bytes(),
            "host_bytes": crate::memory::own(),
        }))?;
    }
    chat.report(&answer, args.verbose);
    if answer.done.finish == Finish::Cancelled { Err(Interrupted.into()) } else { Ok(()) }
}
