//! `rullama eval`: logits of given tokens, their greedy continuation and intermediate values, for comparison with other
//! implementations.

mod tensors;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args as Group;
use pollster::block_on;
use rullama_runtime::{
    MediaEncoders, RuntimeError, Session,
    media::EncodedMedia,
    media::REACH,
    model::CacheType,
    session::{DeviceSampling, SessionOptions, Tap},
};
use serde_json::json;

use crate::{
    adapters::{self, AdapterArgs},
    load::{DeviceArgs, Loader},
    locate::Stores,
    media::MediaArgs,
    output::{print, print_json},
    output_file::protect,
};
use tensors::{Declared, Kind, TensorFile};

#[derive(Debug, Group)]
pub(crate) struct EvalArgs {
    /// Name, path or URL
    model: String,
    /// JSON list of token ids; an image or audio clip is its placeholder id, once per soft token
    #[arg(long, value_name = "FILE")]
    ids_file: PathBuf,
    /// Also generate this many tokens greedily, past any end of sequence
    #[arg(long, value_name = "N", default_value_t = 0)]
    greedy: usize,
    /// Also write intermediate activations
    #[arg(long)]
    taps: bool,
    /// Output safetensors file
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    media: MediaArgs,
    /// Earlier rows each audio row attends to
    #[arg(long, value_name = "ROWS", default_value_t = REACH, value_parser = reach, help_heading = "Images and audio")]
    audio_reach: usize,
    #[command(flatten)]
    adapters: AdapterArgs,
    #[command(flatten)]
    device: DeviceArgs,
}

/// Parses `--audio-reach`; no encoder was trained with more than 64 rows.
fn reach(text: &str) -> Result<usize, &'static str> {
    text.parse().ok().filter(|reach| *reach <= 64).ok_or("give a number from 0 to 64")
}

pub(crate) fn eval(stores: &Stores, args: &EvalArgs) -> Result<()> {
    let ids = ids(args)?;
    let location = stores.find(&args.model)?;
    let adapters = args.adapters.read(&location)?;
    let context = (ids.len() + args.greedy).max(1);
    let loader = Loader::new(location, &args.device, Some(context), CacheType::F32).exact();
    let (model, _) = loader.load()?;
    let encoded = encode(args, args.media.encoders(stores, &loader.location, &model)?)?;
    let block = encoded.iter().map(EncodedMedia::longest).max().unwrap_or(0);
    let cache = loader.options.cache;
    let options =
        SessionOptions { context: Some(context), cache, block, ..SessionOptions::default() };
    let session = || adapters::session(&adapters, &model, &options, &loader);
    let taps = if args.taps { trace(session()?, &ids)? } else { Vec::new() };
    let mut session = session()?;
    let soft = soften(&mut session, &ids, &encoded)?;
    session.extend(&soft)?;
    let greedy = write(&mut session, args, &encoded, &taps)?;
    let soft_tokens: usize = encoded.iter().map(EncodedMedia::tokens).sum();
    if args.json {
        return print_json(&json!({
            "device": model.device().name(),
            "tokens": ids.len(),
            "soft_tokens": soft_tokens,
            "vocabulary": model.config().vocabulary,
            "greedy": greedy,
            "taps": taps.iter().map(|tap| &tap.name).collect::<Vec<_>>(),
        }));
    }
    let (tokens, taps) = (ids.len(), taps.len());
    let (name, out) = (model.device().name(), args.out.display());
    let soft =
        if soft_tokens > 0 { format!(", {soft_tokens} of them soft") } else { String::new() };
    print(&format!(
        "{out}: logits of {tokens} tokens{soft}, {} greedy, {taps} taps, by {name}\n",
        greedy.len()
    ))
}

fn ids(args: &EvalArgs) -> Result<Vec<u32>> {
    let name = || args.ids_file.display().to_string();
    protect(&args.ids_file);
    let text = std::fs::read(&args.ids_file).with_context(name)?;
    serde_json::from_slice(&text)
        .with_context(|| format!("{} is not a JSON list of token ids", name()))
}

/// The files, encoded, in order.
fn encode(args: &EvalArgs, mut encoders: MediaEncoders) -> Result<Vec<EncodedMedia>> {
    encoders.reach = args.audio_reach;
    let files = args.media.files.iter();
    files
        .map(|file| {
            let medium = args.media.read(file)?;
            block_on(encoders.encode(&medium)).with_context(|| file.name())
        })
        .collect()
}

/// The tokens with soft tokens in place of placeholders; their numbers must match.
fn soften(session: &mut Session, ids: &[u32], encoded: &[EncodedMedia]) -> Result<Vec<u32>> {
    if encoded.is_empty() {
        return Ok(ids.to_vec());
    }
    let model = session.model().clone();
    let mut media = Vec::new();
    for encoded in encoded {
        media.extend(encoded.media(encoded.kind.placeholder(model.tokenizer()?)?));
    }
    let soft = session.soften(ids, &media)?;
    for placeholder in media.iter().map(|media| media.placeholder) {
        let same = media.iter().filter(|media| media.placeholder == placeholder);
        let wanted = same.map(|media| media.rows.count).sum();
        let found = ids.iter().filter(|id| **id == placeholder).count();
        if found != wanted {
            return Err(RuntimeError::Placeholders { found, wanted }.into());
        }
    }
    Ok(soft)
}

/// Intermediate values, from a separate session, because they need one pass over all tokens.
fn trace(mut session: Session, ids: &[u32]) -> Result<Vec<Tap>> {
    session.extend(ids)?;
    Ok(block_on(session.trace())?)
}

/// Writes logits while they are computed: those of a long text would not fit in memory.
fn write(
    session: &mut Session,
    args: &EvalArgs,
    encoded: &[EncodedMedia],
    taps: &[Tap],
) -> Result<Vec<u32>> {
    let (rows, width) = (session.tokens().len(), session.model().config().vocabulary);
    let mut declared = Vec::new();
    if !encoded.is_empty() {
        let soft = encoded.iter().map(EncodedMedia::tokens).sum();
        let shape = [soft, session.model().config().width];
        declared.push(Declared::new("embeddings", Kind::F32, &shape));
    }
    declared.push(Declared::new("logits", Kind::F32, &[rows, width]));
    if args.greedy > 0 {
        declared.push(Declared::new("greedy", Kind::I32, &[args.greedy]));
    }
    for tap in taps {
        declared.push(Declared::new(&format!("mid.{}", tap.name), Kind::F32, &tap.shape));
    }
    let mut file = TensorFile::create(&args.out, &declared)?;
    for piece in encoded.iter().flat_map(|encoded| &encoded.pieces) {
        file.floats(&piece.rows.values)?;
    }
    let mut written = Ok(());
    block_on(session.all_logits(&mut |rows| {
        if written.is_ok() {
            written = file.floats(rows);
        }
    }))?;
    written?;
    let mut greedy = Vec::new();
    for _ in 0..args.greedy {
        greedy.extend(block_on(session.next(DeviceSampling::Greedy))?);
    }
    file.ids(&greedy)?;
    for tap in taps {
        file.floats(&tap.values)?;
    }
    file.finish()?;
    Ok(greedy)
}
