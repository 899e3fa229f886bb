//! Adapters: in replies, logits and files.

use std::path::Path;

use rullama_gguf::{DType, Writer, quant::quantize};
use rullama_testkit::golden;
use safetensors::SafeTensors;
use tempfile::TempDir;

use crate::{
    models::{FileInFolder, MICRO, golden_arg},
    program::{has, rullama},
    store::Store,
};

const GGUF: &str = "gguf/micro-e2b-lora-F32.gguf";
const PEFT: &str = "lora/micro-e2b-Q8_0-adapter";
/// Tolerance of the references for f32 activations.
const TOLERANCE: f32 = 1e-3;

fn f32s(file: &[u8], name: &str) -> Vec<f32> {
    let file = SafeTensors::deserialize(file).unwrap();
    let bytes = file.tensor(name).unwrap_or_else(|e| panic!("{name}: {e}")).data().to_vec();
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

fn ids(name: &str) -> Vec<u32> {
    let reference = golden("lora/micro-e2b-Q8_0-lora.safetensors");
    f32s(&reference, name).into_iter().map(f32::to_bits).collect()
}

/// Logits of the short prompt.
fn logits(model: &str, adapters: &[&str], device: &str) -> Vec<f32> {
    let file = FileInFolder::new("ids.json", format!("{:?}", ids("short.ids")));
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("x.safetensors");
    let chosen = adapters.iter().flat_map(|adapter| ["--adapter", adapter]);
    rullama(["eval", model, "--ids-file", file.arg(), "--device", device])
        .and(chosen)
        .and(["--out", out.to_str().unwrap()])
        .stdout();
    f32s(&std::fs::read(&out).unwrap(), "logits")
}

fn largest_difference(some: &[f32], others: &[f32]) -> f32 {
    assert_eq!(some.len(), others.len());
    some.iter().zip(others).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// Largest difference between the logits of the short prompt and those with the golden adapter.
fn difference(model: &str, adapters: &[&str], device: &str) -> f32 {
    let expected = f32s(&golden("lora/micro-e2b-Q8_0-lora.safetensors"), "short.logits");
    largest_difference(&logits(model, adapters, device), &expected)
}

#[test]
fn logits_with_an_adapter_of_either_format() {
    let (model, gguf, peft) = (golden_arg(MICRO), golden_arg(GGUF), golden_arg(PEFT));
    let weights = format!("{peft}/adapter_model.safetensors");
    let (half, rest) = (format!("{gguf}:0.25"), format!("{peft}:0.75"));
    let cases: [&[&str]; 4] = [&[&gguf], &[&peft], &[&weights], &[&half, &rest]];
    for adapters in cases {
        let off = difference(&model, adapters, "cpu");
        assert!(off < TOLERANCE, "{adapters:?}: {off}");
    }
    assert!(difference(&model, &[], "cpu") > 0.1, "the adapter changes something");
    assert!(difference(&model, &[&gguf], "auto") < TOLERANCE);
}

#[test]
fn a_store_model_uses_its_adapter() {
    let store = Store::with("tuned");
    let file = FileInFolder::new("ids.json", format!("{:?}", ids("short.ids")));
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("x.safetensors");
    store
        .rullama(&["eval", "tuned", "--ids-file", file.arg(), "--device", "cpu"])
        .and(["--out", out.to_str().unwrap()])
        .stdout();
    let logits = f32s(&std::fs::read(&out).unwrap(), "logits");
    let expected = f32s(&golden("lora/micro-e2b-Q8_0-lora.safetensors"), "short.logits");
    let off = largest_difference(&logits, &expected);
    assert!(off < TOLERANCE, "{off}");
}

#[test]
fn replies_change_with_an_adapter() {
    let (model, adapter) = (golden_arg(MICRO), golden_arg(GGUF));
    let run = |more: &[&str]| {
        rullama(["run", &model, "Hello", "-n", "8", "--temperature", "0", "--device", "cpu"])
            .and(more)
            .stdout()
    };
    let plain = run(&[]);
    assert_ne!(plain, run(&["--adapter", &adapter]));
    assert_eq!(plain, run(&["--adapter", &format!("{adapter}:0")]));
}

#[test]
fn an_adapter_is_shown() {
    let text = rullama(["adapter", "show", &golden_arg(PEFT), "--tensors"])
        .and(["--model", &golden_arg(MICRO)])
        .stdout();
    has(&text, &["PEFT safetensors", "rank", "4", "scale", "2", "attn_q × 6", "attn_k × 3"]);
    has(&text, &["blk.5.ffn_down.weight", "64 × 192", "fits"]);
    let output = rullama(["adapter", "show", &golden_arg(GGUF), "--json"]).json();
    assert_eq!(output["architecture"], "gemma4");
    assert_eq!(output["tensors"].as_array().unwrap().len(), 36);
}

#[test]
fn an_adapter_is_converted_there_and_back() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (peft, gguf) = (path("peft"), path("back.gguf"));
    rullama(["adapter", "convert", &golden_arg(GGUF), "--out", &peft, "--base", "x/y"]).stdout();
    let config = std::fs::read_to_string(Path::new(&peft).join("adapter_config.json")).unwrap();
    has(&config, &["\"r\": 4", "\"lora_alpha\": 8", "x/y"]);
    rullama(["adapter", "convert", &peft, "--out", &gguf]).stdout();
    let off = difference(&golden_arg(MICRO), &[&gguf], "cpu");
    assert!(off < TOLERANCE, "{off}");
}

#[test]
fn a_merged_model_needs_no_adapter() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("merged.gguf").to_str().unwrap().to_owned();
    let merge = |more: &[&str]| {
        rullama(["adapter", "merge", &golden_arg(MICRO), "--adapter", &golden_arg(GGUF)])
            .and(["--out", &out])
            .and(more)
            .run()
    };
    let outcome = merge(&["--type", "f32"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    has(&outcome.stderr, &["blk.0.attn_q.weight is now stored as F32"]);
    let off = difference(&out, &[], "cpu");
    assert!(off < TOLERANCE, "{off}");
    // In the tensor's own type, the change is rounded like the weights.
    let outcome = merge(&[]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
    let off = difference(&out, &[], "cpu");
    assert!(off > TOLERANCE && off < 3.0, "{off}");
}

/// Factors of rank 2 for the experts of the first layer, and for its router.
fn adapter_of_experts() -> FileInFolder {
    let mut writer = Writer::new()
        .kv("general.type", "adapter")
        .kv("general.architecture", "gemma4")
        .kv("adapter.type", "lora")
        .kv("adapter.lora.alpha", 4.0f32);
    for (tensor, dims) in [
        ("ffn_gate_up_exps", [64, 64, 8]),
        ("ffn_down_exps", [32, 64, 8]),
        ("ffn_gate_inp", [64, 8, 1]),
    ] {
        let [columns, rows, experts] = dims;
        for (end, dims) in [("a", [columns, 2, experts]), ("b", [2, rows, experts])] {
            let count: u64 = dims.iter().product();
            let numbers: Vec<f32> = (0..count).map(|i| (i % 17) as f32 / 80.0 - 0.1).collect();
            let bytes = quantize(DType::F32, &numbers).unwrap();
            writer = writer.tensor(
                format!("blk.0.{tensor}.weight.lora_{end}"),
                &dims,
                DType::F32,
                bytes,
            );
        }
    }
    FileInFolder::new("experts.gguf", writer.finish().unwrap())
}

#[test]
fn experts_are_adapted_and_merged() {
    let (model, adapter) = (golden_arg("gguf/micro-moe-Q8_0.gguf"), adapter_of_experts());
    let text = rullama(["adapter", "show", adapter.arg(), "--tensors", "--model", &model]).stdout();
    has(&text, &["8 × 64 × 32", "8 × 64 × 64", "ffn_gate_inp × 1", "fits"]);
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (out, again) = (path("merged.gguf"), path("again.gguf"));
    rullama(["adapter", "convert", adapter.arg(), "--out", &again]).stdout();
    let merge = ["adapter", "merge", &model, "--adapter", &again, "--out", &out, "--type", "f32"];
    has(&rullama(merge).run().stderr, &["blk.0.ffn_down_exps.weight is now stored as F32"]);
    let merged = logits(&out, &[], "cpu");
    let off = largest_difference(&merged, &logits(&model, &[adapter.arg()], "cpu"));
    assert!(off < TOLERANCE, "{off}");
    assert!(largest_difference(&merged, &logits(&model, &[], "cpu")) > 0.1);
    let error = rullama(["adapter", "convert", adapter.arg(), "--out", &path("peft")]).fails(4);
    has(&error, &["ffn_down_exps", "GGUF"]);
}

#[test]
fn errors_name_the_problem() {
    let (model, adapter) = (golden_arg(MICRO), golden_arg(GGUF));
    let eval = |model: &str, adapter: &str, code: i32| {
        rullama(["eval", model, "--adapter", adapter, "--ids-file", "/dev/null"])
            .and(["--out", "/dev/null"])
            .fails(code)
    };
    let file = FileInFolder::new("ids.json", "[2, 3]");
    let moe = golden_arg("gguf/micro-moe-Q8_0.gguf");
    let error = rullama(["eval", &moe, "--adapter", &adapter, "--ids-file", file.arg()])
        .and(["--out", "/dev/null", "--device", "cpu"])
        .fails(4);
    has(&error, &["does not fit", "blk.5.ffn_up.weight", "blk.0.attn_k.weight", "×"]);
    let error = eval(&model, "much:more", 2);
    has(&error, &["more", "not a number"]);
    let error = rullama(["run", &model, "Hi", "--adapter", &model]).fails(4);
    has(&error, &["not an adapter"]);
    let error = rullama(["run", &model, "Hi", "--adapter", "/nowhere/adapter"]).fails(3);
    has(&error, &["/nowhere/adapter"]);
    let without_config = golden(&format!("{PEFT}/adapter_model.safetensors"));
    let without_config = FileInFolder::new("without_config.safetensors", without_config);
    let error = rullama(["adapter", "show", without_config.arg()]).fails(4);
    has(&error, &["adapter_config.json"]);
    let error = rullama(["adapter", "merge", &model, "--out", "/dev/null"]).fails(1);
    has(&error, &["--adapter"]);
}

#[test]
fn no_output_replaces_an_input_or_a_blob() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    let arg = |name: &str| at(name).to_str().unwrap().to_owned();
    std::fs::write(at("m.gguf"), golden(MICRO)).unwrap();
    std::fs::write(at("a.gguf"), golden(GGUF)).unwrap();
    std::fs::hard_link(at("m.gguf"), at("hard.gguf")).unwrap();
    let merge = |out: &str| {
        rullama(["adapter", "merge", &arg("m.gguf"), "--adapter", &arg("a.gguf"), "--out", out])
    };
    for out in ["m.gguf", "hard.gguf", "a.gguf"] {
        has(&merge(&arg(out)).fails(1), &[out, "reads the file"]);
    }
    has(
        &rullama(["adapter", "convert", &arg("a.gguf"), "--out", &arg("a.gguf")]).fails(1),
        &["a.gguf", "reads the file"],
    );
    let store = Store::with("tuned");
    let (_, blob) = store.weights();
    let blob = blob.to_str().unwrap();
    has(&store.rullama(&["adapter", "merge", "tuned", "--out", blob]).fails(1), &["model store"]);
    assert_eq!(std::fs::read(at("m.gguf")).unwrap(), golden(MICRO));
    assert_eq!(std::fs::read(at("a.gguf")).unwrap(), golden(GGUF));
    assert_eq!(std::fs::read(blob).unwrap(), golden(MICRO));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3, "no part file is left");
}
