//! Replies of a server that runs already, so that a second terminal does not load the model once more.

mod describe;

use std::{path::Path, time::Duration};

use anyhow::{Context, Error, Result, anyhow, bail};
use rullama::{Done, Event, Finish, Format, ImageSize, MediaFile, MediaKind};
use rullama_api::Media;
use rullama_runtime::options::SamplingOptions;
use serde_json::{Map, Value, json};

use super::{
    RunArgs,
    answer::Answer,
    command::{Setting, Topic},
    sampling,
    screen::Screen,
    talk::Conversation,
    timing::{self, Times},
};
use crate::{
    client::{Client, NeedsKey, Next},
    locate::Stores,
    output::{note, note_block, safe},
};

/// What needs the model in this process.
const OF_SERVER: &str =
    "the KV cache is the server's; start with --local to save or load conversations";

/// A conversation that a server continues; its messages are kept here.
pub(super) struct Remote {
    client: Client,
    model: String,
    messages: Vec<Value>,
    /// None: the model's own. Empty: none.
    system: Option<String>,
    think: bool,
    format: Option<Value>,
    options: Map<String, Value>,
    keep_alive: Option<String>,
    waiting: Vec<MediaFile>,
    verbose: bool,
}

impl Remote {
    /// The server for these arguments: none where none runs, it does not have the model, or flags say where the model is or how this
    /// program itself is to run it.
    pub(super) fn find(stores: &Stores, args: &RunArgs) -> Option<Self> {
        let is_plain = !args.local
            && !stores.is_chosen()
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
        let shown = client.post("/api/show", &json!({ "model": args.model }));
        if let Err(error) = &shown
            && error.is::<NeedsKey>()
        {
            note(&format!("not asking the server at {}: {error}", client.base()));
        }
        let shown = shown.ok()?;
        if shown["details"]["family"] == "diffusion-gemma" {
            return None;
        }
        let mut options = match args.sampling.layer() {
            Value::Object(options) => options,
            _ => Map::new(),
        };
        options.extend(args.ctx.map(|tokens| ("num_ctx".to_owned(), tokens.into())));
        Some(Self {
            client,
            model: args.model.clone(),
            messages: Vec::new(),
            system: args.system.clone(),
            think: args.think && !args.no_think,
            format: args.format.as_ref().map(format),
            options,
            keep_alive: args.keep_alive.clone(),
            waiting: args.media.files.clone(),
            verbose: args.verbose,
        })
    }

    /// The new message, with its images and audio.
    fn message(&mut self, text: &str, files: &[MediaFile]) -> Result<Value> {
        let mut images = Vec::new();
        for file in std::mem::take(&mut self.waiting).iter().chain(files) {
            let bytes = std::fs::read(&file.path).with_context(|| safe(&file.name()))?;
            images.push(Media::encode(&bytes));
        }
        let mut message = json!({ "role": "user", "content": text });
        if !images.is_empty() {
            message["images"] = images.into();
        }
        Ok(message)
    }

    fn reply(&self, path: &str, mut body: Value, screen: &mut Screen) -> Result<Answer> {
        body["model"] = self.model.as_str().into();
        body["options"] = self.options.clone().into();
        body["think"] = self.think.into();
        // As without a server: a full context is an error, and drops no messages.
        body["truncate"] = false.into();
        if let Some(time) = &self.keep_alive {
            body["keep_alive"] = time.as_str().into();
        }
        if let Some(format) = &self.format {
            body["format"] = format.clone();
        }
        let lines = self.client.stream(path, &body);
        let (mut text, mut thinking) = (String::new(), String::new());
        loop {
            // The server's errors come as a status, or, once it has begun a reply, as a line.
            let Next::Line(line) = lines.next().map_err(advised)? else {
                let (done, times) = ended(&Value::Null, Finish::Cancelled);
                return Ok(Answer { text, thinking, done, times });
            };
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
            if line["done"] == true {
                let is_short = line["done_reason"] == "length";
                let (done, times) =
                    ended(&line, if is_short { Finish::Length } else { Finish::Stop });
                return Ok(Answer { text, thinking, done, times });
            }
        }
    }
}

impl Conversation for Remote {
    fn greeting(&self) -> String {
        let (model, base) = (safe(&self.model), self.client.base());
        format!(
            "{model} of the server at {base} (--local loads it here). Type /help for commands, /bye to exit.\n"
        )
    }

    fn say(&mut self, text: &str, files: &[MediaFile], screen: &mut Screen) -> Result<Answer> {
        let message = self.message(text, files)?;
        self.messages.push(message);
        let system = self.system.iter().map(|text| json!({ "role": "system", "content": text }));
        let messages: Vec<Value> = system.chain(self.messages.iter().cloned()).collect();
        let answer = self.reply("/api/chat", json!({ "messages": messages }), screen);
        match &answer {
            Ok(Answer { text, thinking, done, .. })
                if done.finish != Finish::Cancelled
                    || !(text.is_empty() && thinking.is_empty()) =>
            {
                self.messages
                    .push(json!({ "role": "assistant", "content": text, "thinking": thinking }));
            }
            // As before: the message may be sent again.
            _ => drop(self.messages.pop()),
        }
        answer
    }

    fn complete(&mut self, text: &str, screen: &mut Screen) -> Result<Answer> {
        self.reply("/api/generate", json!({ "prompt": text, "raw": true }), screen)
    }

    fn report(&self, answer: &Answer) {
        // What the server has computed of a reply that was stopped, it does not tell.
        if self.verbose && answer.done.finish != Finish::Cancelled {
            note_block(&timing::block(&answer.done, &answer.times, None));
        }
    }

    fn figures(&self, _: &Answer) -> Value {
        json!({ "server": self.client.base() })
    }

    fn set(&mut self, setting: Setting) -> Result<()> {
        match setting {
            Setting::System(text) => self.system = Some(text),
            Setting::Think(on) => self.think = on,
            Setting::Verbose(on) => self.verbose = on,
            Setting::Format(wanted) => self.format = wanted.as_ref().map(format),
            Setting::Parameter(name, value) => {
                if name == "num_ctx" {
                    sampling::context(&value)?;
                }
                // The server ignores names that it does not know.
                sampling::set(&mut SamplingOptions::default(), &json!({ name.as_str(): value }))?;
                self.options.insert(name, value);
            }
        }
        Ok(())
    }

    fn show(&self, topic: Topic) -> Result<String> {
        self.describe(topic)
    }

    fn clear(&mut self) {
        self.messages.clear();
    }

    fn save_to(&mut self, _: &Path) -> Result<()> {
        bail!(OF_SERVER)
    }

    fn load_from(&mut self, _: &Path) -> Result<usize> {
        bail!(OF_SERVER)
    }
}

/// Tokens and times of a reply, from its last line.
fn ended(line: &Value, finish: Finish) -> (Done, Times) {
    let tokens = |name: &str| line[name].as_u64().and_then(|n| usize::try_from(n).ok());
    let time = |name: &str| Duration::from_nanos(line[name].as_u64().unwrap_or(0));
    let done = Done {
        finish,
        prompt_tokens: tokens("prompt_eval_count").unwrap_or(0),
        cached_tokens: 0,
        answer_tokens: tokens("eval_count").unwrap_or(0),
    };
    let times = Times {
        load: time("load_duration"),
        media: Duration::ZERO,
        prompt: time("prompt_eval_duration"),
        answer: time("eval_duration"),
    };
    (done, times)
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
