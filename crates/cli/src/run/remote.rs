//! Replies of a server that runs already, so that a second terminal does not load the model once more.

use std::io::{self, IsTerminal};

use anyhow::{Context, Error, Result, anyhow, bail};
use rullama::{Event, Format, ImageSize, MediaFile, MediaKind};
use rullama_api::Media;
use serde_json::{Map, Value, json};

use super::{
    RunArgs,
    command::{self, Command, HELP, Setting, Topic},
    dropped::{Dropped, begins_with_file, dropped},
    input::{self, Input, Lines},
    screen::Screen,
};
use crate::{
    client::Client,
    exit,
    interrupt::{self, Interrupted},
    output::{OutputClosed, note, print, print_json, safe},
};

/// A conversation that a server continues; its messages are kept here.
pub(super) struct Remote {
    client: Client,
    model: String,
    messages: Vec<Value>,
    system: Option<String>,
    think: bool,
    format: Option<Value>,
    options: Map<String, Value>,
    waiting: Vec<MediaFile>,
    verbose: bool,
}

/// What a reply was.
struct Said {
    text: String,
    thinking: String,
    last: Value,
    is_cancelled: bool,
}

impl Remote {
    /// The server for these arguments: none where none runs, it does not have the model, or flags say how this program itself is to run it.
    pub(super) fn find(args: &RunArgs) -> Option<Self> {
        let is_plain = !args.local
            && args.device.is_default()
            && args.adapters.is_empty()
            && !args.draft.is_given()
            && args.media.mmproj.is_none()
            && args.media.size == ImageSize::default()
            && args.media.files.iter().all(|file| file.kind != MediaKind::Video);
        // A path means a file of this process' folder, whatever a server calls its models.
        let is_name = !args.model.contains(['\\']) && !args.model.starts_with(['.', '/', '~']);
        if !is_plain || !is_name || args.model.contains("://") || args.model.ends_with(".gguf") {
            return None;
        }
        let client = Client::find()?;
        let shown = client.post("/api/show", &json!({ "model": args.model })).ok()?;
        if shown["details"]["family"] == "diffusion-gemma" {
            return None;
        }
        let mut options = match args.sampling.layer() {
            Value::Object(options) => options,
            _ => Map::new(),
        };
        options.retain(|_, value| !value.is_null());
        options.extend(args.ctx.map(|tokens| ("num_ctx".to_owned(), tokens.into())));
        Some(Self {
            client,
            model: args.model.clone(),
            messages: Vec::new(),
            system: args.system.clone(),
            think: args.think && !args.no_think,
            format: args.format.as_ref().map(format),
            options,
            waiting: args.media.files.clone(),
            verbose: args.verbose,
        })
    }

    /// Answers one prompt.
    pub(super) fn once(&mut self, prompt: &str, args: &RunArgs) -> Result<()> {
        let mut screen = if args.json { Screen::silent() } else { Screen::new(args.hide_thinking) };
        let said = match args.raw {
            true => self.complete(prompt, &mut screen)?,
            false => self.say(prompt, &[], &mut screen)?,
        };
        screen.end()?;
        if args.json {
            let seconds = |name: &str| said.last[name].as_f64().unwrap_or(0.0) / 1e9;
            print_json(&json!({
                "model": args.model,
                "server": self.client.base(),
                "text": said.text,
                "thinking": said.thinking,
                "finish": said.last["done_reason"],
                "prompt_tokens": said.last["prompt_eval_count"],
                "answer_tokens": said.last["eval_count"],
                "load_seconds": seconds("load_duration"),
                "prompt_seconds": seconds("prompt_eval_duration"),
                "answer_seconds": seconds("eval_duration"),
            }))?;
        }
        self.report(&said);
        if said.is_cancelled { Err(Interrupted.into()) } else { Ok(()) }
    }

    /// Talks until the user leaves.
    pub(super) fn talk(&mut self, lines: &mut dyn Lines, screen: &mut Screen) -> Result<()> {
        if io::stdout().is_terminal() {
            let (model, base) = (safe(&self.model), self.client.base());
            print(&format!(
                "{model} of the server at {base} (--local loads it here). Type /help for commands, /bye to exit.\n"
            ))?;
        }
        loop {
            interrupt::clear();
            let text = match input::message(lines)? {
                Input::Text(text) => text,
                Input::Interrupted | Input::End => return Ok(()),
            };
            let command = if begins_with_file(&text) { None } else { command::parse(&text) };
            let done = match command {
                None if text.trim().is_empty() => Ok(()),
                None => self.turn(&text, screen),
                Some(Err(explanation)) => {
                    note(&explanation);
                    Ok(())
                }
                Some(Ok(Command::Bye)) => return Ok(()),
                Some(Ok(command)) => self.obey(command),
            };
            if let Err(error) = done {
                if error.is::<OutputClosed>() {
                    return Err(error);
                }
                screen.end()?;
                note(&exit::message(&error));
            }
        }
    }

    fn turn(&mut self, text: &str, screen: &mut Screen) -> Result<()> {
        let Dropped { text, files, missing } = dropped(text);
        for path in missing {
            note(&format!("no file {path}; sending the path as text"));
        }
        let said = self.say(&text, &files, screen)?;
        screen.end()?;
        if said.is_cancelled {
            note("stopped");
        }
        self.report(&said);
        if io::stdout().is_terminal() { print("\n") } else { Ok(()) }
    }

    fn report(&self, said: &Said) {
        if self.verbose {
            let rate = |count: &str, time: &str| {
                let tokens = said.last[count].as_f64().unwrap_or(0.0);
                tokens * 1e9 / said.last[time].as_f64().unwrap_or(0.0).max(1.0)
            };
            note(&format!(
                "{} + {} tokens, {:.1} tokens/s read, {:.1} tokens/s written",
                said.last["prompt_eval_count"],
                said.last["eval_count"],
                rate("prompt_eval_count", "prompt_eval_duration"),
                rate("eval_count", "eval_duration"),
            ));
        }
    }

    fn obey(&mut self, command: Command) -> Result<()> {
        match command {
            Command::Help => print(HELP),
            Command::Clear => {
                self.messages.clear();
                print("Conversation cleared.\n")
            }
            Command::Set(setting) => {
                match setting {
                    Setting::System(text) => {
                        self.system = Some(text).filter(|text| !text.is_empty())
                    }
                    Setting::Think(on) => self.think = on,
                    Setting::Verbose(on) => self.verbose = on,
                    Setting::Format(wanted) => self.format = wanted.as_ref().map(format),
                    Setting::Parameter(name, value) => _ = self.options.insert(name, value),
                }
                print("Set.\n")
            }
            Command::Show(Topic::System) => {
                print(&format!("{}\n", safe(self.system.as_deref().unwrap_or("The model's own."))))
            }
            Command::Show(topic) => {
                let shown = self.client.post("/api/show", &json!({ "model": self.model }))?;
                let text = match topic {
                    Topic::Parameters => {
                        shown["parameters"].as_str().unwrap_or_default().to_owned()
                    }
                    Topic::Template => shown["template"].as_str().unwrap_or_default().to_owned(),
                    _ => format!("{}", shown["details"]),
                };
                print(&format!("{}\n", crate::output::safe_lines(&text)))
            }
            Command::Save(_) | Command::Load(_) => {
                bail!(
                    "the KV cache is the server's; start with --local to save or load conversations"
                )
            }
            Command::Bye => Ok(()),
        }
    }

    fn say(&mut self, text: &str, files: &[MediaFile], screen: &mut Screen) -> Result<Said> {
        let mut images = Vec::new();
        for file in std::mem::take(&mut self.waiting).iter().chain(files) {
            let bytes = std::fs::read(&file.path).with_context(|| safe(&file.name()))?;
            images.push(Media::encode(&bytes));
        }
        let mut message = json!({ "role": "user", "content": text });
        if !images.is_empty() {
            message["images"] = images.into();
        }
        self.messages.push(message);
        let system = self.system.iter().map(|text| json!({ "role": "system", "content": text }));
        let messages: Vec<Value> = system.chain(self.messages.iter().cloned()).collect();
        let said = self.reply("/api/chat", json!({ "messages": messages }), screen);
        match &said {
            Ok(said) => {
                self.messages.push(json!({ "role": "assistant", "content": said.text }));
            }
            // As before: the message may be sent again.
            Err(_) => drop(self.messages.pop()),
        }
        said
    }

    fn complete(&self, text: &str, screen: &mut Screen) -> Result<Said> {
        self.reply("/api/generate", json!({ "prompt": text, "raw": true }), screen)
    }

    fn reply(&self, path: &str, mut body: Value, screen: &mut Screen) -> Result<Said> {
        body["model"] = self.model.as_str().into();
        body["options"] = self.options.clone().into();
        body["think"] = self.think.into();
        // As without a server: a full context is an error, and drops no messages.
        body["truncate"] = false.into();
        if let Some(format) = &self.format {
            body["format"] = format.clone();
        }
        let (mut text, mut thinking) = (String::new(), String::new());
        for line in self.client.lines(path, &body).map_err(advised)? {
            let line = line?;
            let message = line.get("message").unwrap_or(&line);
            let piece = |name: &str| message[name].as_str().unwrap_or_default().to_owned();
            let thought = piece("thinking");
            let said = if path == "/api/chat" { piece("content") } else { piece("response") };
            thinking.push_str(&thought);
            text.push_str(&said);
            if !thought.is_empty() {
                screen.show(&Event::Thinking(thought))?;
            }
            if !said.is_empty() {
                screen.show(&Event::Text(said))?;
            }
            let is_cancelled = interrupt::pressed();
            if line["done"] == true || is_cancelled {
                return Ok(Said { text, thinking, last: line, is_cancelled });
            }
        }
        bail!("the server broke off")
    }
}

/// What to do about a full context. The server's message is Ollama's, which clients know.
fn advised(error: Error) -> Error {
    if !error.to_string().contains("exceeds the context length") {
        return error;
    }
    anyhow!(
        "{error}; raise it with --ctx (in a chat /set parameter num_ctx N) or shorten the prompt"
    )
}

fn format(format: &Format) -> Value {
    match format {
        Format::Json => "json".into(),
        Format::Schema(schema) => schema.clone(),
    }
}
