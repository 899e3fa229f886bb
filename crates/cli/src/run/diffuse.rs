//! Replies of diffusion models, whose denoising can be watched.

use std::io::{self, IsTerminal, Write};

use anyhow::Result;
use clap::Args as Group;
use pollster::block_on;
use rullama_chat::{Conversation, Message};
use rullama_gguf::Gguf;
use rullama_runtime::{
    Denoiser,
    denoise::{DEFAULT_BLOCKS, Denoised, WriteOptions, Writing, Written},
    generate::{ChatOptions, Event, Finish, Prompt},
    model::{CacheType, hinted_options},
    options::{SamplingOptions, resolve_seed},
};
use rullama_tokenizer::{Render, Tokenizer};
use serde_json::json;

use super::{RunArgs, sampling::layered};
use crate::{
    interrupt::{self, Interrupted},
    load::showing,
    output::{note, print, print_json},
};

/// How blocks are denoised.
#[derive(Debug, Clone, Group)]
#[command(next_help_heading = "DiffusionGemma")]
pub(crate) struct CanvasArgs {
    /// Show the canvas after every denoising step
    #[arg(long)]
    show_canvas: bool,
    /// Maximum denoising steps per block
    #[arg(long, value_name = "N")]
    steps: Option<usize>,
    /// Total entropy, in nats, of the tokens accepted per step; higher is faster and worse
    #[arg(long, value_name = "NATS")]
    entropy_bound: Option<f32>,
    /// Maximum blocks to generate
    #[arg(long, value_name = "N", default_value_t = DEFAULT_BLOCKS)]
    blocks: usize,
}

/// Answers one prompt.
pub(super) fn once(gguf: Gguf, prompt: &str, args: &RunArgs) -> Result<()> {
    let (sampling, warnings) = hinted_options(&gguf);
    let sampling = layered(sampling, &warnings, &args.sampling)?;
    let device = args.device.open()?;
    let model = showing(|each| block_on(Denoiser::load(gguf, device, each)))?;
    let prompt = read(&model, prompt, args)?;
    let mut session = model.session(args.ctx, CacheType::F16)?;
    let options = write_options(&model, args, sampling);
    let watch = options.denoise.watch && !args.json;
    let mut writing = block_on(Writing::begin(&mut session, &model, &prompt, options))?;
    let mut text = String::new();
    let finish = loop {
        let mut screen = Watch { on: watch, tokenizer: model.tokenizer()? };
        let mut each = |step: &Denoised| {
            screen.show(step);
            interrupt::flow()
        };
        block_on(writing.block(&mut each))?;
        screen.end();
        if let Some(finish) = tell(&mut writing, &mut text, !args.json)? {
            break finish;
        }
    };
    match finish {
        Finish::Cancelled => return Err(Interrupted.into()),
        Finish::Context => {
            note("the context is full, so the reply ends here; use a larger --ctx");
        }
        Finish::Stop | Finish::Length => {}
    }
    let Written { blocks, steps, tokens } = writing.written();
    if args.json {
        print_json(&json!({
            "model": args.model, "text": text, "prompt_tokens": prompt.tokens.len(),
            "answer_tokens": tokens, "blocks": blocks, "steps": steps, "finish": finish.reason(),
        }))?;
    } else {
        print("\n")?;
    }
    if args.verbose {
        let each = tokens as f64 / steps.max(1) as f64;
        note(&format!(
            "{tokens} tokens in {blocks} blocks and {steps} steps, {each:.1} tokens per step"
        ));
    }
    Ok(())
}

/// The prompt as the model wants it.
fn read(model: &Denoiser, prompt: &str, args: &RunArgs) -> Result<Prompt> {
    if args.raw {
        return Ok(model.plain_prompt(prompt)?);
    }
    let system = args.system.iter().map(|text| Message::new("system", text.clone()));
    let messages = system.chain([Message::new("user", prompt)]).collect();
    let thinking = args.think && !args.no_think;
    let conversation = Conversation { messages, thinking, ..Conversation::default() };
    let options = ChatOptions { hide_thinking: args.hide_thinking };
    Ok(model.prompt(&conversation, options)?)
}

/// A number that differs from call to call.
fn entropy() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    (RandomState::new().hash_one(0) & u64::from(u32::MAX)) as u32
}

/// What the file says, under the arguments.
fn write_options(model: &Denoiser, args: &RunArgs, sampling: SamplingOptions) -> WriteOptions {
    let seed = resolve_seed(sampling.seed, entropy());
    let mut denoise = model.options(seed.into());
    denoise.watch = args.canvas.show_canvas;
    denoise.schedule.steps = args.canvas.steps.unwrap_or(denoise.schedule.steps).max(1);
    let bound = args.canvas.entropy_bound;
    denoise.schedule.entropy_bound = bound.unwrap_or(denoise.schedule.entropy_bound);
    let tokens = usize::try_from(sampling.num_predict).ok();
    WriteOptions { denoise, blocks: args.canvas.blocks, tokens, stops: sampling.stop }
}

/// Tells what was said, without thoughts and calls; why the answer has ended, once it has.
fn tell(writing: &mut Writing<'_, '_>, text: &mut String, loud: bool) -> Result<Option<Finish>> {
    while let Some(event) = writing.ready() {
        match event {
            Event::Text(more) => {
                if loud {
                    print(&more)?;
                }
                text.push_str(&more);
            }
            Event::Done(done) => return Ok(Some(done.finish)),
            _ => {}
        }
    }
    Ok(None)
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
            draw(&format!("{place}{text}"));
        } else {
            let line = text.replace(char::is_control, " ");
            draw(&format!("step {:>2}, entropy {:.3}: {line}\n", step.step, step.entropy));
        }
    }

    fn end(&self) {
        if self.on && io::stderr().is_terminal() {
            draw("\u{1b}8\u{1b}[J");
        }
    }
}

/// Writes to standard error at once; nothing is lost to the answer if it is closed.
fn draw(text: &str) {
    let mut screen = io::stderr();
    let _ = screen.write_all(text.as_bytes()).and_then(|()| screen.flush());
}
