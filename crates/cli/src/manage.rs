//! `rullama pull`, `rm`, `cp`, `ps` and `stop`.

use std::{ops::ControlFlow, path::PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args as Group;
use rullama_pull::{Progress, PullError, Puller};
use rullama_store::{Digest, ModelName, store_of};
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

/// The store that models are pulled to: the first that exists, else the first.
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
    pulled.map_err(|error| {
        let advice = match &error {
            PullError::NotFound { .. } => {
                "; check its name and tag (https://ollama.com/search, hf.co/USER/REPO:QUANT)"
            }
            _ => "",
        };
        anyhow::Error::new(error).context(format!("cannot pull {}{advice}", safe(&args.model)))
    })?;
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
    for model in &args.models {
        let name: ModelName = model.parse()?;
        let store = store_of(&stores.0.0, &name)?;
        // A server of ours would keep it in memory, and knows it only as long as it is there; elsewhere there is nothing to unload.
        if let Some(server) = Client::find() {
            let _ = server.post("/api/generate", &json!({ "model": model, "keep_alive": 0 }));
        }
        let deleted = rullama_pull::delete(store.root(), &name)?;
        print(&format!("Deleted {}.\n", safe(&deleted.name.to_string())))?;
    }
    Ok(())
}

pub(crate) fn copy(stores: &Stores, args: &CopyArgs) -> Result<()> {
    let (source, destination): (ModelName, ModelName) =
        (args.source.parse()?, args.destination.parse()?);
    // The copy shares the files of its source.
    let store = store_of(&stores.0.0, &source)?;
    rullama_pull::copy(store.root(), &source, &destination)?;
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

#[cfg(test)]
mod tests {
    use rullama_testkit::StoreFolder;

    use super::*;
    use crate::exit;

    /// `list` shows the models of all folders.
    #[test]
    fn models_are_copied_and_deleted_in_the_folder_that_has_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
        for root in [&first, &second] {
            std::fs::create_dir_all(root.join("manifests")).expect("a folder");
        }
        let files = StoreFolder::new(&second);
        // No weights: broken models can be copied and deleted, too.
        let config = files.blob("config", "{}");
        let manifest = json!({ "schemaVersion": 2, "config": config, "layers": [] });
        files.manifest("test-of-rm", &manifest);
        let stores = Stores::of(vec![first, second]);
        let has = |name: &str| store_of(&stores.0.0, &name.parse().expect("a name")).is_ok();

        let copied = CopyArgs { source: "Test-of-rm".into(), destination: "copy-of-it".into() };
        copy(&stores, &copied).expect("copied");
        assert!(has("copy-of-it"));
        let both = RemoveArgs { models: ["test-of-rm", "copy-of-it"].map(str::to_owned).into() };
        remove(&stores, &both).expect("deleted");
        assert!(!has("test-of-rm") && !has("copy-of-it"));
        let error = exit::message(&remove(&stores, &both).expect_err("it is gone"));
        for root in &stores.0.0 {
            assert!(error.contains(&root.display().to_string()), "{error}");
        }
    }
}
