//! `rullama verify`.

use rullama_store::Digest;
use rullama_testkit::golden;

use crate::{
    models::{FileInFolder, MICRO, golden_arg, nan_file},
    program::{has, rullama},
    store::Store,
};

#[test]
fn whole_files_pass() {
    for name in [MICRO, "gguf/micro-moe-BF16.gguf", "gguf/tiny-e2b-Q4_K_M.gguf"] {
        let text = rullama(["verify", &golden_arg(name)]).stdout();
        has(&text, &["structure", "GGUF version 3", "all finite"]);
        assert!(text.lines().all(|line| line.starts_with("ok ")), "{text}");
    }
    let output = rullama(["verify", &golden_arg(MICRO), "--json"]).json();
    assert_eq!(output["ok"], true);
    let checks = output["checks"].as_array().unwrap();
    let whats: Vec<&str> = checks.iter().map(|check| check["what"].as_str().unwrap()).collect();
    assert_eq!(whats, ["structure", "numbers"]);
    assert!(checks.iter().all(|check| check["ok"] == true && check["bytes"] == 512_856));
}

#[test]
fn unknown_files_get_the_row_to_contribute() {
    let model = golden_arg(MICRO);
    let verify = ["verify", &model, "--answers", "--device", "cpu"];
    let ran = rullama(verify).run();
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    has(&ran.stderr, &["no answers are known"]);
    let digest = Digest::of(&golden(MICRO));
    has(&ran.stdout, &["ok", "structure", "answers.json", "pull request", digest.hex()]);
    // The row is one of the table's: a line of JSON that names the file without its folder.
    let row = ran.stdout.lines().last().unwrap();
    let row: serde_json::Value = serde_json::from_str(row).unwrap();
    assert_eq!(row["model"], "micro-e2b-Q8_0");
    assert!(!row["answers"][0]["greedy"].as_array().unwrap().is_empty(), "{row}");
    let ran = rullama(verify).and(["--json"]).run();
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&report["ok"], &report["row"]), (&serde_json::Value::Bool(false), &row));
}

#[test]
fn nan_is_found() {
    let file = FileInFolder::new("nan.gguf", nan_file());
    has(&rullama(["verify", file.arg()]).fails(4), &["blk.0.broken", "row 1"]);
}

#[test]
fn a_given_checksum_is_compared() {
    let model = golden_arg(MICRO);
    let right = Digest::of(&golden(MICRO));
    let upper = right.hex().to_uppercase();
    for hex in [right.hex(), &right.to_string(), &upper] {
        let text = rullama(["verify", &model, "--sha256", hex]).stdout();
        has(&text.to_lowercase(), &["checksum", right.hex()]);
    }
    let wrong = Digest::of(b"something else");
    let error = rullama(["verify", &model, "--sha256", wrong.hex()]).fails(6);
    has(&error, &[wrong.hex(), right.hex(), "micro-e2b"]);
    let error = rullama(["verify", &model, "--json", "--sha256", wrong.hex()]).fails(6);
    let error: serde_json::Value = serde_json::from_str(&error).unwrap();
    assert_eq!(error["error"]["code"], "checksum");
}

#[test]
fn invalid_checksums_are_wrong_usage() {
    for bad in ["", "abc", "sha256:", &"g".repeat(64), &"0".repeat(65)] {
        has(&rullama(["verify", "m.gguf", "--sha256", bad]).fails(2), &["64 hex digits"]);
    }
}

#[test]
fn a_file_named_after_its_checksum_is_compared_with_it() {
    let content = golden(MICRO);
    let right = FileInFolder::new(&format!("sha256-{}", Digest::of(&content).hex()), &content);
    has(&rullama(["verify", right.arg()]).stdout(), &["checksum"]);
    let wrong = FileInFolder::new(&format!("sha256-{}", Digest::of(b"").hex()), &content);
    has(&rullama(["verify", wrong.arg()]).fails(6), &[Digest::of(b"").hex()]);
}

#[test]
fn models_of_a_store_are_compared_blob_by_blob() {
    let store = Store::with("gemma4:e2b");
    let text = store.rullama(&["verify", "gemma4:e2b"]).stdout();
    has(&text, &["config", "model", "projector", "license", "structure"]);
    assert_eq!(text.lines().count(), 12);

    let (digest, path) = store.weights();
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let error = store.rullama(&["verify", "gemma4:e2b"]).fails(6);
    has(&error, &[path.to_str().unwrap(), digest.hex(), Digest::of(&bytes).hex()]);
    // `show` still works: it reads only the header.
    store.rullama(&["show", "gemma4:e2b"]).stdout();
}

#[test]
fn a_flipped_byte_in_any_blob_is_found() {
    let store = Store::with("gemma4:e2b");
    let blobs = std::fs::read_dir(store.root().join("blobs")).unwrap();
    let mut seen = 0;
    for path in blobs.map(|entry| entry.unwrap().path()) {
        let whole = std::fs::read(&path).unwrap();
        let mut bytes = whole.clone();
        // JSON and text stay valid.
        let at = bytes.iter().rposition(u8::is_ascii_alphabetic).unwrap();
        bytes[at] ^= 0x20;
        std::fs::write(&path, &bytes).unwrap();
        let outcome = store.rullama(&["verify", "gemma4:e2b"]).run();
        assert_eq!(outcome.code, Some(6), "{}: {}", path.display(), outcome.stderr);
        std::fs::write(&path, whole).unwrap();
        seen += 1;
    }
    assert_eq!(seen, 11);
    store.rullama(&["verify", "gemma4:e2b"]).stdout();
}

#[test]
fn checksums_are_only_for_files() {
    let store = Store::with("gemma4:e2b");
    let hex = Digest::of(b"").hex().to_owned();
    has(&store.rullama(&["verify", "gemma4:e2b", "--sha256", &hex]).fails(1), &["--sha256"]);
    let error = rullama(["verify", "http://127.0.0.1:1/m.gguf", "--sha256", &hex]).fails(1);
    has(&error, &["download"]);
}
