//! `rullama run`: one prompt answered, or a chat.

mod answer;
mod chat;
mod command;
mod diffuse;
mod dropped;
mod format;
mod input;
mod remote;
mod sampling;
mod screen;
mod talk;
mod timing;

use std::io::{IsTerminal, Read};

use anyhow::{Context, Error, Result, bail};
use clap::{ArgAction, Args as Group};
use rullama::{Finish, Format};
use rullama_api::KeepAlive;
use rullama_models::gemma4::diffusion::DiffusionConfig;
use rullama_runtime::RuntimeError;
use rullama_store::{ModelName, StoreError};
use serde_json::{Value, json};

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
use remote::Remote;
use sampling::SamplingArgs;
use screen::Screen;
use talk::Conversation;

#[derive(Debug, Group)]
pub(crate) struct RunArgs {
    /// Model name, path or URL; `demo` is a tiny built-in model
    #[arg(default_value = DEMO_NAME)]
    pub(crate) model: String,
    /// Prompt; if not given, read from standard input, or start a chat on a terminal
    prompt: Vec<String>,
    /// System message; replaces the one the model comes with, an empty one removes it
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// Let the model think before it replies
    #[arg(long, conflicts_with = "no_think", value_name = "BOOL", num_args = 0..=1, require_equals = true, action = ArgAction::Set, default_value_t = false, default_missing_value = "true")]
    think: bool,
    /// Reply without thinking (default)
    #[arg(long)]
    no_think: bool,
    /// Hide the model's thinking
    #[arg(long, alias = "hidethinking")]
    hide_thinking: bool,
    /// Continue the prompt as is, without the chat template
    #[arg(long, conflicts_with_all = ["system", "think", "image", "audio", "video"])]
    raw: bool,
    /// Constrain the reply to JSON: `json` for any object, a JSON schema, or a file with one. Thinking is not constrained
    #[arg(long, value_name = "json|SCHEMA", value_parser = format::parse)]
    format: Option<Format>,
    /// Context length in tokens; 4096 unless the model sets another
    #[arg(long, value_name = "TOKENS")]
    ctx: Option<usize>,
    /// Show timings, speed and memory after each reply
    #[arg(long)]
    verbose: bool,
    /// Chat line by line even if standard input is not a terminal
    #[arg(long, conflicts_with_all = ["prompt", "raw", "json"])]
    chat: bool,
    /// Do not save typed lines to the history file
    #[arg(long)]
    no_history: bool,
    /// How long a server that replies keeps the model loaded, such as 10m; -1 is for ever
    #[arg(long, alias = "keepalive", value_name = "TIME", value_parser = keep_alive, allow_hyphen_values = true)]
    keep_alive: Option<String>,
    /// Load the model here, even if a server runs that has it
    #[arg(long)]
    local: bool,
    /// Print the complete reply as JSON
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
    args.sampling.check()?;
    if let Some(mut remote) = Remote::find(stores, args) {
        let prompt = if args.chat { None } else { prompt(args)? };
        interrupt::watch();
        return converse(&mut remote, prompt, args);
    }
    let (_, gguf) = stores.open(&args.model).map_err(|error| perhaps_a_prompt(error, args))?;
    let prompt = if args.chat { None } else { prompt(args)? };
    interrupt::watch();
    if DiffusionConfig::is_diffusion(&gguf) {
        let Some(prompt) = prompt else { bail!("this model does not chat: give it one prompt") };
        return diffuse::once(gguf, &prompt, args);
    }
    drop(gguf);
    converse(&mut Chat::start(stores, args)?, prompt, args)
}

/// A time as Ollama writes it, which the server reads again.
fn keep_alive(text: &str) -> Result<String, &'static str> {
    let time = KeepAlive::parse(text).ok_or("give a time, such as 10m, 30s or -1");
    time.map(|_| text.to_owned())
}

/// Answers one prompt, or chats.
fn converse(chat: &mut dyn Conversation, prompt: Option<String>, args: &RunArgs) -> Result<()> {
    match prompt {
        Some(prompt) => once(chat, &prompt, args),
        None => {
            let mut lines = input::lines(!args.no_history)?;
            talk::talk(chat, lines.as_mut(), &mut Screen::new(args.hide_thinking))
        }
    }
}

/// A prompt alone is taken for the model's name: says how to say both, where it can be no name.
fn perhaps_a_prompt(error: Error, args: &RunArgs) -> Error {
    let model = &args.model;
    let is_name = !model.contains(char::is_whitespace) && model.parse::<ModelName>().is_ok();
    let found = error.chain().find_map(|cause| cause.downcast_ref());
    let is_unknown = matches!(
        found,
        Some(StoreError::NotFound { .. } | StoreError::NoStore { .. } | StoreError::BadName { .. })
    );
    if is_name || !is_unknown || !args.prompt.is_empty() {
        return error;
    }
    error.context(format!(
        "{model:?} was read as the model name; did you mean `rullama run {DEMO_NAME} {model:?}`, with {DEMO_NAME} or another model?"
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
fn once(chat: &mut dyn Conversation, prompt: &str, args: &RunArgs) -> Result<()> {
    let mut screen = if args.json { Screen::silent() } else { Screen::new(args.hide_thinking) };
    let answer = match args.raw {
        true => chat.complete(prompt, &mut screen)?,
        false => chat.say(prompt, &[], &mut screen)?,
    };
    screen.end()?;
    if args.json {
        let (done, times) = (answer.done, answer.times);
        let mut reply = json!({
            "model": args.model,
            "text": answer.text,
            "thinking": answer.thinking,
            "finish": done.finish.reason(),
            "prompt_tokens": done.prompt_tokens,
            "answer_tokens": done.answer_tokens,
            "load_seconds": times.load.as_secs_f64(),
            "prompt_seconds": times.prompt.as_secs_f64(),
            "answer_seconds": times.answer.as_secs_f64(),
        });
        if let (Value::Object(reply), Value::Object(more)) = (&mut reply, chat.figures(&answer)) {
            reply.extend(more);
        }
        print_json(&reply)?;
    }
    chat.report(&answer);
    if answer.done.finish == Finish::Cancelled { Err(Interrupted.into()) } else { Ok(()) }
}
