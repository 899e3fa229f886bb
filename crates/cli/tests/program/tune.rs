//! `rullama tune`: what is kept and used, not which constants are the fastest.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::{
    models::{MICRO, golden_arg},
    program::{Program, has, rullama},
};

fn tune(state: &Path, flags: &[&str]) -> Program {
    let model = golden_arg(MICRO);
    rullama(["tune", &model, "--device", "gpu"]).and(flags).env("XDG_STATE_HOME", state)
}

fn used(state: &Path, flags: &[&str]) -> Value {
    let model = golden_arg(MICRO);
    let args = ["bench", &model, "--device", "gpu", "-p", "0", "-n", "1", "-r", "1", "--json"];
    rullama(args).and(flags).env("XDG_STATE_HOME", state).json()["tuning"].clone()
}

#[cfg(target_os = "linux")]
#[test]
fn measured_constants_are_used_until_they_are_forgotten() {
    let state = tempfile::tempdir().unwrap();
    let file = state.path().join("rullama/tuning.json");
    let outcome = tune(state.path(), &["--seconds", "1", "--json"]).json();
    assert!(outcome["tried"].as_u64().unwrap() > 0);
    let measured = &outcome["measured"];
    assert!(measured["before"].as_f64().unwrap() > 0.0);
    assert!(measured["after"].as_f64() >= measured["before"].as_f64(), "{measured}");
    assert_eq!(outcome["stored"].as_bool().unwrap(), file.exists());

    // What another run may have found.
    let mut entry = measured.clone();
    entry["constants"] = json!({ "split_factor": 1 });
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, json!({ "measured": [entry] }).to_string()).unwrap();
    assert_eq!(used(state.path(), &[]), json!({ "split_factor": 1 }));
    assert_eq!(used(state.path(), &["--no-tuning"]), json!({}));

    // A model that does not fit can be reset: it is not loaded.
    has(&tune(state.path(), &["--gpu-memory", "1k"]).fails(7), &["memory"]);
    has(&tune(state.path(), &["--reset", "--gpu-memory", "1k"]).stdout(), &["Forgotten"]);
    assert_eq!(used(state.path(), &[]), json!({}));
    has(&tune(state.path(), &["--reset"]).stdout(), &["Nothing was measured"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_damaged_file_is_not_used_and_replaced() {
    let state = tempfile::tempdir().unwrap();
    let file = state.path().join("rullama/tuning.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "{").unwrap();
    assert_eq!(used(state.path(), &[]), json!({}));
    let outcome = tune(state.path(), &["--seconds", "0"]).run();
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    has(&outcome.stderr, &["tuning.json", "starting a new one"]);
}

#[test]
fn only_decoders_on_gpus_are_tuned() {
    let model = golden_arg(MICRO);
    let error = rullama(["tune", &model, "--device", "cpu"]).fails(1);
    has(&error, &["there is no GPU"]);
    let embedding = golden_arg("embedding/first-BF16.gguf");
    has(&rullama(["tune", &embedding]).fails(1), &["generate token by token"]);
}
