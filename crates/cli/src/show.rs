//! `rullama show`: the contents of a model.

mod facts;
mod memory;
mod metadata;

use std::collections::BTreeMap;

use anyhow::Result;
use rullama::Location;
use rullama_engine::gpu::{DeviceFacts, Gpu};
use rullama_gguf::{Gguf, TensorInfo};
use rullama_runtime::model::{LoadOptions, describe_plans};
use rullama_store::ModelFiles;
use serde_json::{Map, Value, json};

use crate::{
    args::ShowArgs,
    locate::Stores,
    output::{bytes, print, print_json, safe, table},
    quiet::quietly,
};
use facts::Facts;

pub(crate) fn show(stores: &Stores, args: &ShowArgs) -> Result<()> {
    let (location, gguf) = stores.open(&args.model)?;
    let facts = Facts::of(&location, &gguf);
    if args.json {
        return print_json(&as_json(&location, &gguf, &facts, args));
    }
    let mut text = section("Model", &facts.rows());
    text.push_str(&section("File", &file_rows(&location, &gguf)));
    text.push_str(&section("Formats", &format_rows(&gguf)));
    if let Some(rows) = memory::rows(&location, &gguf, args) {
        text.push_str(&section("Estimated memory", &rows));
    }
    if let Location::Store(files) = &location {
        text.push_str(&store_sections(files));
    }
    if args.metadata || args.full {
        let rows: Vec<Vec<String>> = gguf
            .metadata()
            .iter()
            .map(|entry| vec![safe(&entry.key), metadata::text(&entry.value, args.full)])
            .collect();
        text.push_str(&section("Metadata", &rows));
    }
    if args.tensors {
        text.push_str(&section(
            "Tensors",
            &gguf.tensors().iter().map(tensor_row).collect::<Vec<_>>(),
        ));
    }
    if args.plan {
        text.push_str(&plan_section(&gguf, args)?);
    }
    print(&text)
}

/// The plan for this machine's GPU, or for the minimum WebGPU device if there is none.
fn plan_section(gguf: &Gguf, args: &ShowArgs) -> Result<String> {
    let gpu = quietly(|| pollster::block_on(Gpu::open()));
    let (device, facts) = match &gpu {
        Ok(gpu) => (safe(gpu.name()), gpu.facts().clone()),
        Err(_) => ("the minimum WebGPU device".to_owned(), DeviceFacts::floor()),
    };
    let options = LoadOptions {
        context: args.ctx.map(|tokens| tokens.max(1)),
        host_experts: args.host_experts,
        ..LoadOptions::default()
    };
    let plans = describe_plans(gguf, &facts, &options)?;
    let body: String = plans.lines().map(|line| format!("    {line}\n")).collect();
    Ok(format!("  Plan for {device}\n{body}"))
}

fn section(title: &str, rows: &[Vec<String>]) -> String {
    let body: String = table(rows).lines().map(|line| format!("    {line}\n")).collect();
    format!("  {title}\n{body}\n")
}

fn file_rows(location: &Location, gguf: &Gguf) -> Vec<Vec<String>> {
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let whole: u64 = gguf.tensors().iter().map(TensorInfo::nbytes).sum();
    let mut rows = vec![
        match location {
            Location::Store(files) => row("blob", safe(&files.model.path.display().to_string())),
            Location::Path(path) => row("path", safe(&path.display().to_string())),
            // The source's name contains no password.
            Location::Url(_) => row("url", safe(gguf.name())),
            Location::Demo => row("path", "inside this program".into()),
        },
        row("format", format!("GGUF version {}", gguf.version())),
        row("tensors", format!("{} ({})", gguf.tensors().len(), bytes(whole))),
        row("metadata keys", gguf.metadata().len().to_string()),
    ];
    if gguf.files() > 1 {
        rows.push(row("files", format!("{}, this is the first", gguf.files())));
    }
    rows
}

/// Tensors and bytes of each tensor type.
fn formats(gguf: &Gguf) -> BTreeMap<&'static str, (u64, u64)> {
    let mut formats = BTreeMap::new();
    for tensor in gguf.tensors() {
        let entry: &mut (u64, u64) = formats.entry(tensor.dtype().name()).or_default();
        *entry = (entry.0 + 1, entry.1 + tensor.nbytes());
    }
    formats
}

fn format_rows(gguf: &Gguf) -> Vec<Vec<String>> {
    let row = |(name, (count, size)): (&str, (u64, u64))| {
        vec![name.to_owned(), format!("{count} tensors"), bytes(size)]
    };
    formats(gguf).into_iter().map(row).collect()
}

fn tensor_row(tensor: &TensorInfo) -> Vec<String> {
    let dims: Vec<String> = tensor.dims().iter().map(ToString::to_string).collect();
    vec![
        safe(tensor.name()),
        tensor.dtype().name().into(),
        dims.join(" × "),
        bytes(tensor.nbytes()),
    ]
}

fn store_sections(files: &ModelFiles) -> String {
    let layers: Vec<Vec<String>> = files
        .blobs
        .iter()
        .map(|blob| vec![blob.kind.to_string(), bytes(blob.size), blob.digest.short().to_owned()])
        .collect();
    let mut text = section("Layers", &layers);
    if let Some(params) = &files.params {
        let rows: Vec<Vec<String>> =
            params.iter().map(|(key, value)| vec![safe(key), safe(&value.to_string())]).collect();
        text.push_str(&section("Parameters", &rows));
    }
    let first_line = |text: &str| {
        vec![vec![safe(text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default())]]
    };
    if let Some(system) = &files.system {
        text.push_str(&section("System", &first_line(system)));
    }
    for license in &files.licenses {
        text.push_str(&section("License", &first_line(license)));
    }
    text
}

fn as_json(location: &Location, gguf: &Gguf, facts: &Facts, args: &ShowArgs) -> Value {
    let mut value = json!({
        "model": args.model,
        "gguf": { "version": gguf.version(), "alignment": gguf.alignment(), "tensor_count": gguf.tensors().len() },
        "architecture": facts.architecture,
        "name": facts.name,
        "parameters": facts.parameters,
        "file_type": facts.file_type,
        "context_length": facts.context_length,
        "embedding_length": facts.embedding_length,
        "block_count": facts.block_count,
        "vocabulary": facts.vocabulary,
        "vision": facts.vision,
        "audio": facts.audio,
        "capabilities": facts.capabilities,
        "formats": formats(gguf).into_iter()
            .map(|(name, (tensors, bytes))| (name.to_owned(), json!({ "tensors": tensors, "bytes": bytes })))
            .collect::<Map<_, _>>(),
        "metadata": gguf.metadata().iter()
            .map(|entry| (entry.key.clone(), metadata::json(&entry.value, args.full)))
            .collect::<Map<_, _>>(),
    });
    if let Some(memory) = memory::json(location, gguf, args) {
        value["memory"] = memory;
    }
    match location {
        Location::Store(files) => {
            value["source"] = json!({ "kind": "store", "path": files.model.path.display().to_string(), "size": files.model.size });
            value["store"] = store_json(files);
        }
        Location::Path(path) => {
            value["source"] = json!({ "kind": "file", "path": path.display().to_string(), "size": path.metadata().ok().map(|data| data.len()) });
        }
        Location::Demo => value["source"] = json!({ "kind": "built in" }),
        Location::Url(_) => {
            value["model"] = json!(gguf.name());
            value["source"] = json!({ "kind": "url", "url": gguf.name() });
        }
    }
    if args.tensors {
        let tensor = |t: &TensorInfo| {
            json!({
                "name": t.name(), "type": t.dtype().name(), "shape": t.dims(),
                "offset": t.offset(), "bytes": t.nbytes(),
            })
        };
        value["tensors"] = gguf.tensors().iter().map(tensor).collect();
    }
    if gguf.files() > 1 {
        value["gguf"]["files"] = gguf.files().into();
        for (shown, tensor) in
            value["tensors"].as_array_mut().into_iter().flatten().zip(gguf.tensors())
        {
            shown["file"] = tensor.part().into();
        }
    }
    value
}

fn store_json(files: &ModelFiles) -> Value {
    let layer = |l: &rullama_store::Layer| json!({ "kind": l.kind.to_string(), "digest": l.digest.to_string(), "size": l.size, "path": l.path.display().to_string() });
    json!({
        "name": files.name.to_string(),
        "full_name": files.name.full(),
        "id": files.id.hex(),
        "layers": files.blobs.iter().map(layer).collect::<Vec<_>>(),
        "template": files.template,
        "system": files.system,
        "params": files.params,
        "messages": files.messages,
        "licenses": files.licenses,
        "renderer": files.config.renderer,
        "parser": files.config.parser,
    })
}
