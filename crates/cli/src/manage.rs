//! `rullama pull`, `rm`, `cp`, `ps` and `stop`.

use std::{ops::ControlFlow, path::PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args as Group;
use rullama_pull::{Progress, Puller};
use rullama_store::{Digest, ModelName};
use serde_json::{Value, json};

use crate::{
    client::Client,
    interrupt,
    locate::Stores,
    output::{bytes, note, print, print_json, progress, safe, table},
    serve::settings::pull_options,
};

#[derive(Debug, Group)]
pub(crate) struct PullArgs {
    /// gemma4:e2b, hf.co/USER/REPO:QUANT, or a model of another registry
    model: String,
    /// Allow plain http
    #[arg(long)]
    insecure: bool,
    /// Print the progress as JSON, an object per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Group)]
pub(crate) struct RemoveArgs {
    /// Models to delete
    #[arg(required = true)]
    models: Vec<String>,
}

#[derive(Debug, Group)]
pub(crate) struct CopyArgs {
    /// Model to copy
    source: String,
    /// Its new name
    destination: String,
}

#[derive(Debug, Group)]
pub(crate) struct PsArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Group)]
pub(crate) struct StopArgs {
    /// Model to unload
    model: String,
}

/// Whatever follows a command that rullama does not have.
#[derive(Debug, Group)]
pub(crate) struct MissingArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    rest: Vec<String>,
}

/// Commands of Ollama's that rullama does not have.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Missing {
    Create,
    Push,
    Signin,
}

/// Says what to type instead.
pub(crate) fn missing(command: Missing) -> Result<()> {
    bail!(match command {
        Missing::Create =>
            "rullama has no Modelfiles: send POST /api/create to `rullama serve` to store a base with an adapter, a system text or parameters, or \
             use `rullama run MODEL --adapter FILE --system TEXT`",
        Missing::Push =>
            "rullama uploads no models; Ollama, which uses the same store, does with `ollama push`",
        Missing::Signin => "rullama needs no account",
    })
}

/// The store that is written to: the first that exists, else the first.
fn root(stores: &Stores) -> Result<PathBuf> {
    let roots = &stores.0.0;
    let root = roots.iter().find(|root| root.is_dir()).or(roots.first());
    root.cloned().context("there is no folder for models; name one with --store or OLLAMA_MODELS")
}

pub(crate) fn pull(stores: &Stores, args: &PullArgs) -> Result<()> {
    let name: ModelName = args.model.parse()?;
    let mut options = pull_options();
    options.insecure = args.insecure;
    interrupt::watch();
    let mut shown = Shown { json: args.json, bar: None, status: String::new(), failed: None };
    let puller = Puller::new(root(stores)?, options);
    let pulled = puller.pull(&name, &mut |progress| {
        shown.tell(&progress);
        if shown.failed.is_some() { ControlFlow::Break(()) } else { interrupt::flow() }
    });
    if let Some((_, bar)) = shown.bar.take() {
        bar.finish();
    }
    if let Some(error) = shown.failed {
        return Err(error);
    }
    interrupt::check()?;
    pulled.with_context(|| format!("cannot pull {}", safe(&args.model)))?;
    if args.json { Ok(()) } else { print(&format!("Pulled {}.\n", safe(&args.model))) }
}

/// Progress on the screen: a bar per layer, and other steps in words.
struct Shown {
    json: bool,
    bar: Option<(Digest, indicatif::ProgressBar)>,
    status: String,
    failed: Option<anyhow::Error>,
}

impl Shown {
    fn tell(&mut self, step: &Progress) {
        if self.json {
            let printed = step.line().map(|line| print(&format!("{line}\n")));
            self.failed = printed.and_then(Result::err);
            return;
        }
        if let Progress::Layer { digest, total, completed } = step {
            let is_new = self.bar.as_ref().is_none_or(|(known, _)| known != digest);
            if is_new {
                if let Some((_, bar)) = self.bar.take() {
                    bar.finish();
                }
                self.bar = Some((digest.clone(), progress(*total, digest.short())));
            }
            if let Some((_, bar)) = &self.bar {
                bar.set_position(*completed);
            }
            return;
        }
        let Some(status) = step.status().filter(|status| *status != self.status) else { return };
        if *step != Progress::Success {
            note(&status);
        }
        self.status = status;
    }
}

pub(crate) fn remove(stores: &Stores, args: &RemoveArgs) -> Result<()> {
    let root = root(stores)?;
    for model in &args.models {
        let name: ModelName = model.parse()?;
        // A server of ours would keep it in memory, and knows it only as long as it is there; elsewhere there is nothing to unload.
        if let Some(server) = Client::find() {
            let _ = server.post("/api/generate", &json!({ "model": model, "keep_alive": 0 }));
        }
        let deleted = rullama_pull::delete(&root, &name)?;
        print(&format!("Deleted {}.\n", safe(&deleted.name.to_string())))?;
    }
    Ok(())
}

pub(crate) fn copy(stores: &Stores, args: &CopyArgs) -> Result<()> {
    let (source, destination) = (args.source.parse()?, args.destination.parse()?);
    rullama_pull::copy(&root(stores)?, &source, &destination)?;
    print(&format!("Copied {} to {}.\n", safe(&args.source), safe(&args.destination)))
}

pub(crate) fn ps(args: &PsArgs) -> Result<()> {
    let listed = Client::need()?.get("/api/ps")?;
    if args.json {
        return print_json(&listed);
    }
    let models = listed["models"].as_array().cloned().unwrap_or_default();
    if models.is_empty() {
        return print("No model is loaded.\n");
    }
    let mut rows = vec![["NAME", "SIZE", "GPU", "CONTEXT", "UNTIL"].map(str::to_owned).to_vec()];
    rows.extend(models.iter().map(row));
    print(&table(&rows))
}

fn row(model: &Value) -> Vec<String> {
    let (size, gpu) =
        (model["size"].as_u64().unwrap_or(0), model["size_vram"].as_u64().unwrap_or(0));
    let until = model["expires_at"].as_str().unwrap_or_default();
    vec![
        safe(model["name"].as_str().unwrap_or_default()),
        bytes(size),
        bytes(gpu),
        model["context_length"].to_string(),
        // Whole seconds are enough for people.
        if until.starts_with("9999") {
            "for ever".into()
        } else {
            safe(&until.chars().take(19).collect::<String>())
        },
    ]
}

pub(crate) fn stop(args: &StopArgs) -> Result<()> {
    let body = json!({ "model": args.model, "keep_alive": 0 });
    Client::need()?.post("/api/generate", &body)?;
    print(&format!("Unloaded {}.\n", safe(&args.model)))
}
