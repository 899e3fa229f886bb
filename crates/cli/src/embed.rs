//! `rullama embed`: embeddings of texts.

use std::{io::Read, path::PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args as Group;
use pollster::block_on;
use rullama_runtime::embedder::{EmbedOptions, Embedder, EmbeddingPrompt};
use serde_json::json;

use crate::{
    load::{DeviceArgs, showing},
    locate::Stores,
    output::{note, print, print_json},
};

#[derive(Debug, Group)]
pub(crate) struct EmbedArgs {
    /// EmbeddingGemma model: name, path or URL
    pub(crate) model: String,
    /// Texts; without texts and --file, standard input is read as one text
    text: Vec<String>,
    /// File with one text per line; empty lines are skipped
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    file: Option<PathBuf>,
    /// The texts are search queries: same as --prompt query
    #[arg(long, conflicts_with_all = ["document", "prompt"])]
    query: bool,
    /// The texts are documents to search: same as --prompt document
    #[arg(long, conflicts_with = "prompt")]
    document: bool,
    /// Task of the embeddings: query, document, question-answering, fact-checking, classification, clustering, similarity,
    /// code-retrieval, summarization or none
    #[arg(long, value_name = "NAME", value_parser = prompt)]
    prompt: Option<EmbeddingPrompt>,
    /// Truncate each vector to this many dimensions
    #[arg(long, value_name = "N")]
    dimensions: Option<usize>,
    /// Print {"model":…,"embeddings":[[…]],"tokens":…}
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    device: DeviceArgs,
}

fn prompt(name: &str) -> Result<EmbeddingPrompt, String> {
    EmbeddingPrompt::named(name).ok_or_else(|| {
        let names: Vec<&str> = EmbeddingPrompt::ALL.iter().map(|(name, _)| *name).collect();
        format!("give one of {}", names.join(", "))
    })
}

pub(crate) fn embed(stores: &Stores, args: &EmbedArgs) -> Result<()> {
    let texts = texts(args)?;
    let (_, gguf) = stores.open(&args.model)?;
    let device = args.device.open()?;
    let embedder = showing(|each| block_on(Embedder::load(&gguf, device, each)))?;
    let prompt = match (args.query, args.document) {
        (true, _) => EmbeddingPrompt::Query,
        (_, true) => EmbeddingPrompt::Document,
        _ => args.prompt.unwrap_or_default(),
    };
    let options = EmbedOptions { prompt, dimensions: args.dimensions };
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let embeddings = block_on(embedder.embed(&texts, options))?;
    if embeddings.cut > 0 {
        let max = embedder.config().context;
        note(&format!(
            "{} of the texts were truncated to the model's limit of {max} tokens",
            embeddings.cut
        ));
    }
    if args.json {
        return print_json(&json!({
            "model": args.model, "embeddings": embeddings.vectors, "tokens": embeddings.tokens,
        }));
    }
    let line = |vector: &Vec<f32>| {
        let values: Vec<String> = vector.iter().map(ToString::to_string).collect();
        values.join(" ") + "\n"
    };
    print(&embeddings.vectors.iter().map(line).collect::<String>())
}

fn texts(args: &EmbedArgs) -> Result<Vec<String>> {
    let texts: Vec<String> = match &args.file {
        Some(path) => {
            let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
            text.lines().filter(|line| !line.trim().is_empty()).map(String::from).collect()
        }
        None if !args.text.is_empty() => args.text.clone(),
        None => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("standard input")?;
            if text.trim().is_empty() { Vec::new() } else { vec![text] }
        }
    };
    if texts.is_empty() {
        bail!("no text: give it as arguments, with --file or on standard input");
    }
    Ok(texts)
}
