//! `rullama verify`: checks structure, values, checksums and greedy tokens of a model.

mod answers;

use std::{ops::ControlFlow, path::Path};

use anyhow::{Result, bail};
use indicatif::ProgressBar;
use rullama::Location;
use rullama_gguf::{Gguf, TensorInfo};
use rullama_runtime::model::CacheType;
use rullama_store::{Digest, ModelFiles, StoreError};
use serde_json::{Value, json};

use self::answers::Outcome;
use crate::{
    args::VerifyArgs,
    load::Loader,
    locate::{self, Stores},
    output::{bytes, print, print_json, progress, table},
};

/// Bytes of rows read at once.
const CHUNK: u64 = 8 << 20;

/// The result of one check.
struct Check {
    what: String,
    detail: String,
    bytes: u64,
}

pub(crate) fn verify(stores: &Stores, args: &VerifyArgs) -> Result<()> {
    let mut checks = match stores.find(&args.model)? {
        Location::Store(files) => {
            if args.sha256.is_some() {
                bail!(
                    "the checksums of {} are in the store; --sha256 is only for files",
                    files.name
                );
            }
            store(&files)?
        }
        Location::Path(path) => file(&path, args.sha256.as_ref())?,
        place @ Location::Demo => vec![header(&locate::open(&place)?)],
        place @ Location::Url(_) => {
            if args.sha256.is_some() {
                bail!("cannot check the checksum of a URL: download the file and verify that");
            }
            vec![header(&locate::open(&place)?)]
        }
    };
    let mut row = None;
    if args.answers {
        let (outcome, bytes) = answers(stores.find(&args.model)?, args)?;
        match outcome {
            Outcome::Equal(detail) => {
                checks.push(Check { what: "answers".into(), detail, bytes });
            }
            Outcome::Unknown(unknown) => row = Some(unknown),
        }
    }
    report(checks, row.as_deref(), args.json)?;
    match row {
        None => Ok(()),
        Some(_) => bail!("no answers are known for this file, so that they could not be compared"),
    }
}

/// Prints the checks, and the row to contribute for a file without known answers.
fn report(checks: Vec<Check>, row: Option<&str>, as_json: bool) -> Result<()> {
    if as_json {
        let row: Option<Value> = row.map(serde_json::from_str).transpose()?;
        let checks: Vec<Value> = checks
            .iter()
            .map(|c| json!({ "what": c.what, "detail": c.detail, "bytes": c.bytes, "ok": true }))
            .collect();
        let mut report = json!({ "ok": row.is_none(), "checks": checks });
        if let Some(row) = row {
            report["row"] = row;
        }
        return print_json(&report);
    }
    let rows: Vec<Vec<String>> =
        checks.into_iter().map(|c| vec!["ok".into(), c.what, bytes(c.bytes), c.detail]).collect();
    print(&table(&rows))?;
    let Some(row) = row else { return Ok(()) };
    print(&format!(
        "\nIf this is a published file and these are the tokens of a reference (llama.cpp with --temp 0, say), contribute this\n\
         row: add it to crates/cli/src/verify/answers.json and open a pull request.\n\n{row}\n"
    ))
}

/// Checks every blob against its digest, then the model's structure.
fn store(files: &ModelFiles) -> Result<Vec<Check>> {
    let mut checks = Vec::new();
    for blob in &files.blobs {
        hash(&blob.path, &blob.digest, &blob.kind.to_string())?;
        checks.push(Check {
            what: blob.kind.to_string(),
            detail: blob.digest.to_string(),
            bytes: blob.size,
        });
    }
    checks.push(header(&locate::open(&Location::Path(files.model.path.clone()))?));
    Ok(checks)
}

/// Checks structure and values, and the checksum if it is given or part of the file name, as in a store.
fn file(path: &Path, sha256: Option<&Digest>) -> Result<Vec<Check>> {
    let gguf = locate::open(&Location::Path(path.into()))?;
    let mut checks = vec![header(&gguf), values(&gguf)?];
    let named = path.file_name().and_then(|name| Digest::parse(name.to_str()?));
    if let Some(expected) = sha256.or(named.as_ref()) {
        hash(path, expected, "checksum")?;
        let size = path.metadata().map_or(0, |data| data.len());
        checks.push(Check { what: "checksum".into(), detail: expected.to_string(), bytes: size });
    }
    Ok(checks)
}

/// What the model answers, against the table of published files.
fn answers(place: Location, args: &VerifyArgs) -> Result<(Outcome, u64)> {
    let digest = match &place {
        // The digest was checked just before.
        Location::Store(files) => files.model.digest.clone(),
        Location::Path(path) => digest_of(path)?,
        Location::Demo | Location::Url(_) => {
            bail!("--answers is for files and models of a store, which have a checksum")
        }
    };
    let path = matches!(place, Location::Path(_));
    let loader = Loader::new(place, &args.device, None, CacheType::F32).exact();
    let (model, _) = loader.load()?;
    // A row names the file, not a folder of this machine.
    let name = Path::new(&args.model).file_stem().and_then(|name| name.to_str());
    let name = if path { name.unwrap_or(&args.model) } else { &args.model };
    let outcome = answers::check(&model, name, &digest.hex().to_ascii_lowercase())?;
    let bytes = model.gguf().tensors().iter().map(TensorInfo::nbytes).sum();
    Ok((outcome, bytes))
}

fn digest_of(path: &Path) -> Result<Digest> {
    let bar = progress(0, "checksum");
    let digest = rullama_store::digest_of(path, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
        ControlFlow::Continue(())
    });
    bar.finish_and_clear();
    Ok(digest?)
}

/// Opening checked every count, offset and shape.
fn header(gguf: &Gguf) -> Check {
    let detail = format!(
        "GGUF version {}, {} keys, {} tensors",
        gguf.version(),
        gguf.metadata().len(),
        gguf.tensors().len()
    );
    Check {
        what: "structure".into(),
        detail,
        bytes: gguf.tensors().iter().map(TensorInfo::nbytes).sum(),
    }
}

/// Checks that no tensor has NaN or infinity.
fn values(gguf: &Gguf) -> Result<Check> {
    let total = gguf.tensors().iter().map(TensorInfo::nbytes).sum();
    let bar = progress(total, "numbers");
    let mut skipped = 0;
    for tensor in gguf.tensors() {
        if tensor.dtype().decodable() {
            finite(gguf, tensor, &bar)?;
        } else {
            skipped += 1;
        }
    }
    bar.finish_and_clear();
    let detail = match skipped {
        0 => "all finite".into(),
        n => format!("all finite; {n} tensors not checked: rullama cannot decode their formats"),
    };
    Ok(Check { what: "numbers".into(), detail, bytes: total })
}

fn finite(gguf: &Gguf, tensor: &TensorInfo, bar: &ProgressBar) -> Result<()> {
    let step = (CHUNK / tensor.row_bytes().max(1)).max(1);
    let mut row = 0;
    while row < tensor.rows() {
        let end = (row + step).min(tensor.rows());
        let chunk = pollster::block_on(gguf.read_rows(tensor, row..end))?;
        tensor.check_finite(row, &chunk)?;
        bar.inc(chunk.len() as u64);
        row = end;
    }
    Ok(())
}

fn hash(path: &Path, digest: &Digest, what: &str) -> Result<(), StoreError> {
    let bar = progress(0, what);
    let result = rullama_store::verify(path, digest, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
        ControlFlow::Continue(())
    });
    bar.finish_and_clear();
    result
}
