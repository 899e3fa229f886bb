//! Measurements: the form of the output, not the values.

use serde_json::{Value, json};

use crate::{
    models::{MICRO, golden_arg},
    program::{has, rullama},
};

fn bench(device: &str) -> Value {
    let model = golden_arg(MICRO);
    rullama(["bench", &model, "-p", "8,0", "-n", "4", "-d", "0,12", "-r", "2", "--json"])
        .and(["--device", device, "--table", "gpu", "--profile"])
        .json()
}

fn check(output: &Value) {
    for field in ["load_seconds", "first_token_cold_seconds", "first_token_warm_seconds"] {
        assert!(output[field].as_f64().unwrap() > 0.0, "{field}");
    }
    assert_eq!((&output["cache"], &output["context"]), (&json!("f16"), &json!(20)));
    assert!(output["adapter"].is_string() && output["gpu_bytes"].is_u64());
    let tests = output["tests"].as_array().unwrap();
    let names: Vec<&str> = tests.iter().map(|test| test["test"].as_str().unwrap()).collect();
    assert_eq!(names, ["pp8", "tg4", "pp8 @ d12", "tg4 @ d12"]);
    for test in tests {
        assert!(test["tokens_per_second"].as_f64().unwrap() > 0.0);
        assert!(test["deviation"].as_f64().unwrap() >= 0.0);
        assert_eq!(test["step"].is_object(), test["kind"] == "decode");
        assert_eq!(test["seconds"].as_array().unwrap().len(), 2, "the warm-up is not counted");
    }
}

#[test]
fn on_the_cpu() {
    let output = bench("cpu");
    check(&output);
    assert_eq!((&output["adapter"], &output["gpu_bytes"]), (&json!("CPU"), &json!(0)));
    let step = &output["tests"][1]["step"];
    for field in ["dispatches", "bytes_read", "bytes_written", "operations"] {
        assert!(step[field].is_u64(), "{field}");
    }
    assert_eq!((&step["submits"], &step["bytes_back"]), (&json!(1), &json!(4)));
    assert!(output["profiles"].as_array().unwrap().is_empty());
    assert!(output["queue_seconds"].is_null() && output["steps_ahead"].is_null());
}

#[test]
fn on_a_gpu() {
    let output = bench("gpu");
    check(&output);
    assert!(output["tests"][1]["step"]["dispatches"].as_u64().unwrap() > 10);
    let profiles = output["profiles"].as_array().unwrap();
    let runs: Vec<&str> = profiles.iter().map(|run| run["run"].as_str().unwrap()).collect();
    assert_eq!(runs, ["decode, one token", "prefill, 19 tokens"]);
    assert!(output["gpu_bytes"].as_u64().unwrap() > 10_000);
    assert!(output["queue_seconds"].as_f64().unwrap() > 0.0);
    assert!(output["steps_ahead"].as_u64().unwrap() > 1);
}

#[test]
fn growth_is_measured_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("growth.html");
    let (model, path) = (golden_arg(MICRO), page.to_str().unwrap());
    let flags = ["--device", "cpu", "-p", "0", "-n", "0", "-r", "1", "--json"];
    let mmproj = folder.path().join("mmproj.gguf");
    let mmproj = mmproj.to_str().unwrap();
    rullama(["bench-towers", "--size", "tiny", "--write", mmproj]).stdout();
    let more = ["--growth", path, "--mmproj", mmproj];
    let output = rullama(["bench", &model]).and(more).and(flags).json();
    let of = |what: &str, key: &str| -> Vec<u64> {
        let rows = output["growth"][what].as_array().unwrap();
        rows.iter().map(|row| row[key].as_u64().unwrap()).collect()
    };
    assert_eq!(of("decode", "depth"), [0, 512, 1024, 2048, 4063]);
    assert_eq!(of("prefill", "tokens"), [32, 64, 128, 256, 512, 1024, 2048]);
    assert_eq!(of("memory", "context"), [4096]);
    let drawn = std::fs::read_to_string(&page).unwrap();
    has(&drawn, &["decode by depth, tokens/s", "prefill by length", "model", "GPU memory, GB"]);
    assert_eq!(of("adapters", "adapters"), [0, 1, 2, 4, 8]);
    assert_eq!(of("streams", "streams"), [1, 2, 4, 8, 16, 32]);
    // The encoder has positions for images of this size.
    assert!((1..=5).contains(&of("images", "tokens").len()));
    for series in ["decode", "prefill", "adapters", "streams", "images"] {
        for point in output["growth"][series].as_array().unwrap() {
            assert!(point["model"].as_f64().unwrap() > 0.0, "{series}: {point}");
        }
    }
    assert_eq!(drawn.matches("<svg").count(), 6);
}

#[test]
fn text_output() {
    let model = golden_arg(MICRO);
    let text = rullama(["bench", &model, "--device", "cpu"])
        .and(["-p", "4", "-n", "2", "-r", "1"])
        .stdout();
    has(&text, &["adapter", "CPU", "first token", "TEST", "pp4", "tg2", "±"]);
    for flags in [&["-r", "0"][..], &["-p", "0", "-n", "0"]] {
        let error = rullama(["bench", &model, "--device", "cpu"]).and(flags).fails(1);
        has(&error, &["nothing to measure"]);
    }
    let error = rullama(["bench", &model, "--device", "cpu", "-d", "99999999"]).fails(1);
    has(&error, &["not possible"]);
}

#[test]
fn towers_are_measured() {
    let flags = ["--size", "tiny", "--device", "cpu", "-r", "1", "--seconds", "1"];
    let bench = || rullama(["bench-towers"]).and(flags).and(["--image-budget", "70"]);
    has(&bench().stdout(), &["12-megapixel photo", "image of 63 tokens", "1 s of audio", "CPU"]);
    let measured = bench().and(["--json"]).json();
    assert_eq!(measured["tests"].as_array().unwrap().len(), 4);
    assert!(measured["tests"][1]["operations"].as_u64().unwrap() > 1_000_000);
    has(&bench().and(["--feature-level", "floor"]).fails(1), &["--feature-level needs a GPU"]);
}

#[test]
fn the_cost_of_http() {
    let model = golden_arg(MICRO);
    let args = ["bench", &model, "--parallel", "1,3", "--http", "-p", "8", "-n", "6", "-r", "2"];
    let run = || rullama(args).and(["--device", "cpu"]);
    let output = run().and(["--json"]).json();
    let rows = output["http"].as_array().unwrap();
    let kinds: Vec<_> = rows.iter().map(|row| (&row["streams"], &row["sampling"])).collect();
    let expected = [(1, "greedy"), (1, "drawn"), (3, "greedy"), (3, "drawn")];
    let expected = expected.map(|(streams, sampling)| (json!(streams), json!(sampling)));
    assert_eq!(kinds, expected.iter().map(|(a, b)| (a, b)).collect::<Vec<_>>());
    for row in rows {
        // The replies are the same three ways; the program fails where they are not.
        let most = row["streams"].as_u64().unwrap() * 2 * 6;
        for way in ["scheduler", "http", "http_whole"] {
            let tokens = row[way]["tokens"].as_u64().unwrap();
            assert!((1..=most).contains(&tokens), "{way}: {tokens} of {most}");
            assert!(row[way]["tokens_per_second"].as_f64().unwrap() > 0.0, "{way}");
        }
        assert!(row["http"]["first_token_ms_p50"].as_f64().unwrap() > 0.0);
        assert!(row["lost_percent"].is_f64() && row["lost_percent_whole"].is_f64());
    }
    has(&run().stdout(), &["SCHEDULER/S", "HTTP/S", "LOST %", "greedy", "drawn"]);
}
