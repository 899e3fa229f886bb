//! `rullama show` on files.

use rullama_gguf::{DType, StringArray, Writer};
use serde_json::{Value, json};

use crate::{
    models::{FileInFolder, MICRO, golden_arg, small_file},
    program::{has, rullama},
};

fn show(model: &str, flags: &[&str]) -> Value {
    rullama(["show", model, "--json"]).and(flags).json()
}

#[test]
fn summary_of_the_golden_models() {
    let check = |name: &str, facts: Value| {
        let output = show(&golden_arg(name), &[]);
        for (key, want) in facts.as_object().unwrap() {
            assert_eq!(&output[key], want, "{name}: {key}");
        }
        assert_eq!(output["architecture"], "gemma4");
        assert_eq!(output["vocabulary"], 640);
        let size = std::fs::metadata(golden_arg(name)).unwrap().len();
        let source = json!({ "kind": "file", "path": golden_arg(name), "size": size });
        assert_eq!(output["source"], source);
        assert_eq!(output["tensors"], Value::Null);
    };
    check(
        MICRO,
        json!({
            "name": "Micro E2B", "parameters": 442_550, "file_type": "Q8_0", "context_length": 4096,
            "embedding_length": 64, "block_count": 6, "vision": false, "audio": false,
            "gguf": { "version": 3, "alignment": 32, "tensor_count": 99 },
            "formats": {
                "F32": { "tensors": 49, "bytes": 58_072 }, "Q8_0": { "tensors": 50, "bytes": 454_784 },
            },
        }),
    );
    check(
        "gguf/micro-moe-BF16.gguf",
        json!({
            "name": "Micro Moe", "parameters": 290_027, "file_type": "BF16", "block_count": 3,
            "formats": {
                "BF16": { "tensors": 27, "bytes": 573_440 }, "F32": { "tensors": 41, "bytes": 13_228 },
            },
        }),
    );
    check(
        "gguf/tiny-e2b-Q4_K_M.gguf",
        json!({ "name": "Tiny E2B", "parameters": 2_594_756, "file_type": "Q4_K_M", "embedding_length": 256 }),
    );
}

#[test]
fn text_output() {
    let text = rullama(["show", &golden_arg(MICRO)]).stdout();
    has(&text, &["Micro E2B", "442.6K", "Q8_0", "640 tokens", "GGUF version 3", "99 (513 KB)"]);
    has(&text, &["50 tensors    455 KB"]);
    assert!(!text.contains("blk.0.") && !text.contains("tokenizer.ggml"), "{text}");
    let more = rullama(["show", &golden_arg(MICRO), "--tensors", "--metadata"]).stdout();
    has(
        &more,
        &["token_embd.weight", "64 × 640", "tokenizer.ggml.tokens", "array of string × 640"],
    );
    assert!(more.starts_with(&text));
}

#[test]
fn long_arrays_are_only_counted_by_default() {
    let model = golden_arg(MICRO);
    let short = &show(&model, &[])["metadata"];
    assert_eq!(short["tokenizer.ggml.tokens"], json!({ "type": "string", "count": 640 }));
    assert_eq!(short["tokenizer.ggml.token_type"], json!({ "type": "i32", "count": 640 }));
    // Short ones are printed.
    assert_eq!(short["gemma4.feed_forward_length"], json!([96, 96, 96, 192, 192, 192]));
    assert_eq!(short["gemma4.attention.layer_norm_rms_epsilon"], json!(1e-6));

    let full = &show(&model, &["--full"])["metadata"];
    assert_eq!(full["tokenizer.ggml.tokens"][105], "<|turn>");
    assert_eq!(full["tokenizer.ggml.tokens"].as_array().unwrap().len(), 640);
    assert_eq!(full["tokenizer.ggml.scores"].as_array().unwrap().len(), 640);
    has(&rullama(["show", &model, "--full"]).stdout(), &["\"<|turn>\""]);
}

#[test]
fn tensors_in_file_order() {
    let output = show(&golden_arg("gguf/tiny-e2b-Q4_K_M.gguf"), &["--tensors"]);
    let tensors = output["tensors"].as_array().unwrap();
    assert_eq!(tensors.len(), 68);
    let first = json!({
        "name": "output_norm.weight", "type": "F32", "shape": [256], "offset": 21_728, "bytes": 1_024,
    });
    assert_eq!(tensors[0], first);
    let total: u64 = tensors.iter().map(|tensor| tensor["bytes"].as_u64().unwrap()).sum();
    assert_eq!(total, 286_480 + 1_032_192 + 45_056 + 510_720);
}

#[test]
fn every_metadata_type_is_printed() {
    let file = small_file()
        .kv("u8", 8u8)
        .kv("i8", -8i8)
        .kv("u64", u64::MAX)
        .kv("i64", i64::MIN)
        .kv("f32", 0.1f32)
        .kv("f64", 0.1f64)
        .kv("nan", f32::NAN)
        .kv("bools", vec![true, false])
        .kv("strings", ["a", "b"].into_iter().collect::<StringArray>())
        .kv("floats", vec![0.1f32, f32::INFINITY]);
    let file = FileInFolder::new("types.gguf", file.finish().unwrap());
    let metadata = &show(file.arg(), &[])["metadata"];
    for (key, want) in [
        ("u8", json!(8)),
        ("i8", json!(-8)),
        ("u64", json!(u64::MAX)),
        ("i64", json!(i64::MIN)),
        ("f32", json!(0.1)),
        ("f64", json!(0.1)),
        ("nan", Value::Null),
        ("bools", json!([true, false])),
        ("strings", json!(["a", "b"])),
        ("floats", json!([0.1, null])),
    ] {
        assert_eq!(metadata[key], want, "{key}");
    }
    rullama(["show", file.arg(), "--metadata"]).stdout();
}

#[test]
fn names_cannot_steer_the_terminal() {
    let evil = "\x1b]0;owned\x07\x1b[2J\r\n\u{9b}31m\u{202e}gnp";
    let file = Writer::new()
        .kv("general.architecture", evil)
        .kv("general.name", evil)
        .kv(evil, evil)
        .kv("list", [evil].into_iter().collect::<StringArray>())
        .tensor(evil, &[1], DType::F32, vec![0; 4])
        .finish()
        .unwrap();
    let file = FileInFolder::new("evil.gguf", file);
    let text = rullama(["show", file.arg(), "--metadata", "--full", "--tensors"]).stdout();
    assert_harmless(&text);
    has(&text, &["\\u{1b}[2J", "\\u{9b}31m", "\\u{202e}gnp"]);
    // JSON contains the name unchanged.
    assert_eq!(show(file.arg(), &[])["name"], evil);
}

#[test]
fn errors_cannot_steer_the_terminal() {
    let key = "\x1b[2J\u{9b}2J";
    let mut file = b"GGUF\x03\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0".to_vec();
    file.extend((key.len() as u64).to_le_bytes());
    file.extend(key.as_bytes());
    file.extend(77u32.to_le_bytes());
    let file = FileInFolder::new("evil.gguf", file);
    let error = rullama(["show", file.arg()]).fails(4);
    has(&error, &["evil.gguf", "77"]);
    assert_harmless(&error);
}

#[track_caller]
fn assert_harmless(text: &str) {
    let steers = |c: &char| (c.is_control() && *c != '\n') || ('\u{202a}'..='\u{202e}').contains(c);
    assert_eq!(text.chars().find(steers), None, "{text:?}");
}

#[test]
fn invalid_files_are_refused() {
    let check = |content: &[u8], code: i32, parts: &[&str]| {
        let file = FileInFolder::new("broken.gguf", content);
        let error = rullama(["show", file.arg()]).fails(code);
        has(&error, &["broken.gguf"]);
        has(&error, parts);
    };
    let whole = std::fs::read(golden_arg(MICRO)).unwrap();
    check(b"", 4, &[]);
    check(b"<!doctype html>", 4, &["not a GGUF file"]);
    check(&whole[..100], 4, &["damaged"]);
    check(&whole[..10_000], 4, &["truncated"]);
    check(&whole[..whole.len() - 1], 4, &["truncated"]);
    check(b"GGUF\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 4, &["version 1"]);
}

#[test]
fn a_folder_is_refused() {
    let folder = tempfile::TempDir::new().unwrap();
    rullama(["show", folder.path().to_str().unwrap()]).fails(4);
}

#[test]
fn files_without_a_path_or_extension_are_found() {
    let file = FileInFolder::new("model", small_file().finish().unwrap());
    let path = std::path::Path::new(file.arg());
    let output = rullama(["show", "model", "--json"]).folder(path.parent().unwrap()).json();
    assert_eq!(output["name"], "Small");
}

#[test]
fn host_experts_count_as_host_memory() {
    let model = golden_arg("gguf/micro-moe-Q8_0.gguf");
    let memory =
        |flags: &[&str]| rullama(["show", &model, "--json"]).and(flags).json()["memory"].clone();
    let number = |value: &Value, name: &str| value[name].as_u64().unwrap();
    let (all, some) = (memory(&[]), memory(&["--host-experts", "1"]));
    assert_eq!((number(&all, "host"), number(&some, "host_experts")), (0, 1));
    let moved = number(&some, "host");
    assert!(moved > 0 && number(&some, "weights") + moved == number(&all, "weights"));
    let budget = (number(&all, "gpu") - 1).to_string();
    let within = memory(&["--gpu-memory", &budget]);
    assert!(number(&within, "host") > 0 && number(&within, "gpu") < number(&all, "gpu"));
    let text = rullama(["show", &model, "--host-experts", "1"]).stdout();
    has(&text, &["on the host", "experts of 1 layers"]);
}

#[test]
fn memory_is_estimated_for_models_that_run() {
    let model = golden_arg(MICRO);
    has(&rullama(["show", &model]).stdout(), &["Estimated memory", "per-layer table"]);
    let memory =
        |ctx: &str| rullama(["show", &model, "--json", "--ctx", ctx]).json()["memory"].clone();
    let (small, large) = (memory("64"), memory("256"));
    assert_eq!((&small["context"], &large["context"]), (&json!(64), &json!(256)));
    let number = |value: &Value, name: &str| value[name].as_u64().unwrap();
    assert_eq!(number(&small, "weights"), number(&large, "weights"));
    assert!(number(&small, "caches") < number(&large, "caches"));
    assert_eq!(
        number(&small, "gpu"),
        number(&small, "gpu_without_table") + number(&small, "table")
    );
    assert_eq!(number(&small, "host"), 0);
    assert_eq!(number(&small, "host_with_table"), number(&small, "table"));
    has(&rullama(["show", &model]).stdout(), &["on the host", "as mapped pages of the file"]);
    let broken = FileInFolder::new("m.gguf", small_file().finish().unwrap());
    assert!(rullama(["show", broken.arg(), "--json"]).json()["memory"].is_null());
}
