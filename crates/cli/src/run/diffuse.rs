//! Answers of models that write blocks all at once: each settles out of noise, and can be watched.

use std::{
    io::{self, IsTerminal, Write},
    ops::ControlFlow,
};

use anyhow::Result;
use clap::Args as Group;
use pollster::block_on;
use rullama_chat::{
    Conversation, Event, Message, Parser, ParserOptions, RenderOptions, Thinking, render,
};
use rullama_gguf::Gguf;
use rullama_runtime::{
    Denoiser,
    denoise::{DenoiseOptions, Denoised},
    model::CacheType,
};
use rullama_tokenizer::{Render, Span, Special, Tokenizer};
use serde_json::json;

use super::{RunArgs, answer::entropy};
use crate::{
    interrupt::{self, Interrupted},
    load::open_device,
    output::{note, print, print_json, progress},
};

/// How blocks settle.
#[derive(Debug, Clone, Group)]
#[command(next_help_heading = "DiffusionGemma")]
pub(crate) struct CanvasArgs {
    /// Draw the canvas as it settles: words appear in place
    #[arg(long)]
    show_canvas: bool,
    /// Steps that a block may take
    #[arg(long, value_name = "N")]
    steps: Option<usize>,
    /// Entropy, in nats, that places accepted in one step may have together: more is faster and worse
    #[arg(long, value_name = "NATS")]
    entropy_bound: Option<f32>,
    /// Blocks to write, at most
    #[arg(long, value_name = "N", default_value_t = 4)]
    blocks: usize,
}

/// What an answer took.
#[derive(Default)]
struct Took {
    blocks: usize,
    steps: usize,
    tokens: usize,
}

/// Answers one prompt.
pub(super) fn once(gguf: Gguf, prompt: &str, args: &RunArgs) -> Result<()> {
    let device = open_device(args.device.device, false)?;
    let bar = progress(0, "loading");
    let mut each = |progress: rullama_runtime::model::Progress| {
        bar.set_length(progress.total);
        bar.set_position(progress.done);
        if interrupt::pressed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let loaded = block_on(Denoiser::load(gguf, device, &mut each));
    bar.finish_and_clear();
    let model = loaded?;
    let tokenizer = model.tokenizer()?;
    let (tokens, parser) = read(&model, tokenizer, prompt, args)?;
    let mut options = model.options(args.sampling.seed().unwrap_or_else(|| entropy().into()));
    options.watch = args.canvas.show_canvas;
    options.settle.steps = args.canvas.steps.unwrap_or(options.settle.steps).max(1);
    options.settle.entropy_bound =
        args.canvas.entropy_bound.unwrap_or(options.settle.entropy_bound);
    let mut said = Said { parser: Parser::new(parser), text: String::new(), loud: !args.json };
    let took = write(&model, &tokens, &options, (args, &mut said))?;
    said.end()?;
    if args.json {
        print_json(&json!({
            "model": args.model, "text": said.text, "prompt_tokens": tokens.len(),
            "answer_tokens": took.tokens, "blocks": took.blocks, "steps": took.steps,
        }))?;
    }
    if args.verbose {
        let each = took.tokens as f64 / took.steps.max(1) as f64;
        note(&format!(
            "{} tokens in {} blocks and {} steps, {each:.1} tokens a step",
            took.tokens, took.blocks, took.steps
        ));
    }
    Ok(())
}

/// The prompt's tokens, and how to read what comes.
fn read(
    model: &Denoiser,
    tokenizer: &Tokenizer,
    prompt: &str,
    args: &RunArgs,
) -> Result<(Vec<u32>, ParserOptions)> {
    if args.raw {
        let mut tokens = tokenizer.encode(prompt, Special::None);
        tokens.splice(0..0, tokenizer.bos());
        return Ok((tokens, ParserOptions::default()));
    }
    let system = args.system.iter().map(|text| Message::new("system", text.clone()));
    let messages = system.chain([Message::new("user", prompt)]).collect();
    let thinking = args.think && !args.no_think;
    let conversation = Conversation { messages, thinking, ..Conversation::default() };
    let rendered = render(&conversation, RenderOptions::for_model(model.family()?))?;
    let spans: Vec<Span<'_>> = rendered
        .spans()
        .iter()
        .map(|span| if span.trusted { Span::Template(&span.text) } else { Span::Text(&span.text) })
        .collect();
    let parser = ParserOptions {
        thinking: if args.hide_thinking { Thinking::Hide } else { Thinking::Show },
        start: rendered.end().into(),
        tools: Vec::new(),
    };
    Ok((tokenizer.encode_prompt(&spans), parser))
}

/// Writes block after block until one ends the answer.
fn write(
    model: &Denoiser,
    prompt: &[u32],
    options: &DenoiseOptions,
    (args, said): (&RunArgs, &mut Said),
) -> Result<Took> {
    let tokenizer = model.tokenizer()?;
    let mut session = model.session(args.ctx, CacheType::F16)?;
    block_on(session.read(prompt))?;
    let mut took = Took::default();
    while took.blocks < args.canvas.blocks {
        let mut screen = Watch { on: options.watch && !args.json, tokenizer };
        let mut each = |step: &Denoised| {
            screen.show(step);
            if interrupt::pressed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let block = block_on(session.denoise(options, &mut each))?;
        screen.end();
        let Some(block) = block else { return Err(Interrupted.into()) };
        took.blocks += 1;
        took.steps += block.steps;
        let end = block.tokens.iter().position(|id| tokenizer.is_end(*id));
        let tokens = &block.tokens[..end.unwrap_or(block.tokens.len())];
        took.tokens += tokens.len();
        said.more(&tokenizer.decode(tokens, Render::Markers))?;
        if end.is_some() || took.blocks == args.canvas.blocks {
            break;
        }
        if session.filled() + 2 * block.tokens.len() > session.context() {
            note("the context is full, so the answer ends here; use a larger --ctx");
            break;
        }
        block_on(session.read(&block.tokens))?;
    }
    Ok(took)
}

/// What is said, without markers and calls.
struct Said {
    parser: Parser,
    text: String,
    loud: bool,
}

impl Said {
    fn more(&mut self, text: &str) -> Result<()> {
        let mut events = Vec::new();
        self.parser.push(text, &mut events);
        self.tell(events)
    }

    fn end(&mut self) -> Result<()> {
        let mut events = Vec::new();
        self.parser.finish(&mut events);
        self.tell(events)?;
        if self.loud { print("\n") } else { Ok(()) }
    }

    fn tell(&mut self, events: Vec<Event>) -> Result<()> {
        for event in events {
            if let Event::Text(text) = event {
                if self.loud {
                    print(&text)?;
                }
                self.text.push_str(&text);
            }
        }
        Ok(())
    }
}

/// Draws a canvas: over itself on a terminal, else a line for each step.
struct Watch<'t> {
    on: bool,
    tokenizer: &'t Tokenizer,
}

impl Watch<'_> {
    fn show(&mut self, step: &Denoised) {
        if !self.on {
            return;
        }
        let end = step.tokens.iter().position(|id| self.tokenizer.is_end(*id));
        let tokens = &step.tokens[..end.unwrap_or(step.tokens.len())];
        let text = self.tokenizer.decode(tokens, Render::Plain);
        if io::stderr().is_terminal() {
            // Back to where the canvas began, and away with what was there.
            let place = if step.step == 1 { "\u{1b}7" } else { "\u{1b}8\u{1b}[J" };
            tell(&format!("{place}{text}"));
        } else {
            let line = text.replace(char::is_control, " ");
            tell(&format!("step {:>2}, entropy {:.3}: {line}\n", step.step, step.entropy));
        }
    }

    fn end(&self) {
        if self.on && io::stderr().is_terminal() {
            tell("\u{1b}8\u{1b}[J");
        }
    }
}

/// Writes to standard error at once; nothing is lost to the answer if it is closed.
fn tell(text: &str) {
    let mut screen = io::stderr();
    let _ = screen.write_all(text.as_bytes()).and_then(|()| screen.flush());
}
