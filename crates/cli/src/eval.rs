//! `rullama eval`: logits of given tokens, their greedy continuation and intermediate values, for comparison with other
//! implementations.

mod tensors;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args as Group;
use pollster::block_on;
use rullama_runtime::{
    Session,
    model::CacheType,
    session::{Pick, SessionOptions, Tap},
};
use serde_json::json;

use crate::{
    adapters::{AdapterArgs, Chosen},
    load::{DeviceArgs, Loader},
    locate::Stores,
    output::{print, print_json},
};
use tensors::{Declared, Kind, TensorFile};

#[derive(Debug, Group)]
pub(crate) struct EvalArgs {
    /// Name, path or URL
    model: String,
    /// A JSON list of token ids
    #[arg(long, value_name = "FILE")]
    ids_file: PathBuf,
    /// Also continue with this many most likely tokens; an end of sequence does not end it
    #[arg(long, value_name = "N", default_value_t = 0)]
    greedy: usize,
    /// Also write intermediate values
    #[arg(long)]
    taps: bool,
    /// Where the safetensors file goes
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    adapters: AdapterArgs,
    #[command(flatten)]
    device: DeviceArgs,
}

pub(crate) fn eval(stores: &Stores, args: &EvalArgs) -> Result<()> {
    let ids = ids(args)?;
    let place = stores.find(&args.model)?;
    let adapters = Chosen::new(&place, &args.adapters)?;
    let context = (ids.len() + args.greedy).max(1);
    let loader = Loader::new(place, &args.device, Some(context), CacheType::F32).exact();
    let (model, _) = loader.load()?;
    let options =
        SessionOptions { context: Some(context), cache: loader.cache, ..SessionOptions::default() };
    let session = || adapters.session(&model, &options, &loader);
    let taps = if args.taps { trace(session()?, &ids)? } else { Vec::new() };
    let mut session = session()?;
    session.extend(&ids)?;
    let greedy = write(&mut session, args, &taps)?;
    if args.json {
        return print_json(&json!({
            "device": model.device().name(),
            "tokens": ids.len(),
            "vocabulary": model.config().vocabulary,
            "greedy": greedy,
            "taps": taps.iter().map(|tap| &tap.name).collect::<Vec<_>>(),
        }));
    }
    let (tokens, taps) = (ids.len(), taps.len());
    let (name, out) = (model.device().name(), args.out.display());
    print(&format!(
        "{out}: logits of {tokens} tokens, {} greedy, {taps} taps, by {name}\n",
        greedy.len()
    ))
}

fn ids(args: &EvalArgs) -> Result<Vec<u32>> {
    let name = || args.ids_file.display().to_string();
    let text = std::fs::read(&args.ids_file).with_context(name)?;
    serde_json::from_slice(&text)
        .with_context(|| format!("{} is no JSON list of token ids", name()))
}

/// Intermediate values, from a session of their own: they are made by one run over all tokens.
fn trace(mut session: Session, ids: &[u32]) -> Result<Vec<Tap>> {
    session.extend(ids)?;
    Ok(block_on(session.trace())?)
}

/// Logits go to the file as they are made: those of a long text would not fit into memory.
fn write(session: &mut Session, args: &EvalArgs, taps: &[Tap]) -> Result<Vec<u32>> {
    let (rows, width) = (session.tokens().len(), session.model().config().vocabulary);
    let mut declared = vec![Declared::new("logits", Kind::F32, &[rows, width])];
    if args.greedy > 0 {
        declared.push(Declared::new("greedy", Kind::I32, &[args.greedy]));
    }
    for tap in taps {
        declared.push(Declared::new(&format!("mid.{}", tap.name), Kind::F32, &tap.shape));
    }
    let mut file = TensorFile::create(&args.out, &declared)?;
    let mut written = Ok(());
    block_on(session.all_logits(&mut |rows| {
        if written.is_ok() {
            written = file.numbers(rows);
        }
    }))?;
    written?;
    let mut greedy = Vec::new();
    for _ in 0..args.greedy {
        greedy.extend(block_on(session.next(Pick::Greedy))?);
    }
    file.ids(&greedy)?;
    for tap in taps {
        file.numbers(&tap.numbers)?;
    }
    file.finish()?;
    Ok(greedy)
}
