//! Training adapters with the program.

use rullama_testkit::golden;
use safetensors::SafeTensors;
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    models::{FileInFolder, MICRO, golden_arg},
    program::{has, rullama},
};

fn reference() -> Vec<u8> {
    golden("lora/micro-e2b-Q8_0-lora.safetensors")
}

/// The sequence the reference was trained on, as a line of data.
fn data(reference: &SafeTensors<'_>) -> FileInFolder {
    let ids = |name: &str| -> Vec<i32> {
        let bytes = reference.tensor(name).unwrap().data();
        bytes.chunks_exact(4).map(|b| i32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
    };
    let line =
        format!("{{\"ids\":{:?},\"n_prompt\":{}}}\n", ids("train.ids"), ids("train.n_prompt")[0]);
    FileInFolder::new("data.jsonl", line)
}

fn numbers(bytes: &[u8]) -> Vec<f64> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]).into()).collect()
}

#[test]
fn twenty_steps_follow_the_reference() {
    let reference = reference();
    let reference = SafeTensors::deserialize(&reference).unwrap();
    let (data, folder) = (data(&reference), TempDir::new().unwrap());
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (model, init) = (golden_arg(MICRO), golden_arg("lora/micro-e2b-Q8_0-adapter"));
    let output = rullama(["train", &model, data.arg(), "--init", &init, "--steps", "20"])
        .and(["--lr", "2e-3", "--weight-decay", "0.01", "--schedule", "constant", "--no-clip"])
        .and(["--log", &path("F.jsonl"), "--grads", &path("G.safetensors")])
        .and(["--out", &path("DIR"), "--device", "cpu"])
        .stdout();
    has(&output, &["20 steps, loss 0.03", "loss └"]);

    let log = std::fs::read_to_string(path("F.jsonl")).unwrap();
    let losses: Vec<f64> = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["loss"].as_f64().unwrap())
        .collect();
    let curve = reference.tensor("train.random_b.loss_curve").unwrap();
    let expected = curve.data().chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap()));
    assert_eq!(losses.len(), 21);
    for (loss, expected) in losses.iter().zip(expected) {
        assert!((loss - expected).abs() < 1e-3 * expected, "{loss} instead of {expected}");
    }
    let found = std::fs::read(path("G.safetensors")).unwrap();
    let found = SafeTensors::deserialize(&found).unwrap();
    for name in reference.names() {
        let Some(short) = name.strip_prefix("train.random_b.grad.") else { continue };
        let (found, expected) = (found.tensor(short).unwrap(), reference.tensor(name).unwrap());
        assert_eq!(found.shape(), expected.shape(), "{short}");
        let (found, expected) = (numbers(found.data()), numbers(expected.data()));
        let difference: f64 = found.iter().zip(&expected).map(|(a, b)| (a - b).powi(2)).sum();
        assert!(
            difference.sqrt() < 1e-3 * expected.iter().map(|x| x * x).sum::<f64>().sqrt(),
            "{short}"
        );
    }
    let compared = rullama(["eval-adapter", &model, &path("DIR"), data.arg()])
        .and(["--device", "cpu", "--json"])
        .json();
    assert!(compared["adapted_loss"].as_f64().unwrap() < 0.05);
    assert!(compared["base_loss"].as_f64().unwrap() > 1.0);
    for file in ["adapter_config.json", "adapter_model.safetensors", "loss.svg", "report.html"] {
        assert!(folder.path().join("DIR").join(file).exists(), "{file}");
    }
}

#[test]
fn data_is_previewed_and_checked_line_by_line() {
    let file = FileInFolder::new("data.jsonl", "{\"prompt\":\"Hi\",\"completion\":\"Yes.\"}\n");
    let output =
        rullama(["train", "demo", file.arg(), "--preview", "1", "--device", "cpu"]).stdout();
    has(&output, &["⟦Yes.<turn|>⟧", "1 examples"]);
    let file = FileInFolder::new("data.jsonl", "{\"text\":\"a\"}\n{\"prompt\":\"Hi\"}\n");
    let out = TempDir::new().unwrap();
    let error = rullama(["train", "demo", file.arg(), "--device", "cpu", "--out"])
        .and([out.path()])
        .fails(4);
    has(&error, &["line 2 of the data", "\"completion\""]);
}

/// A trained adapter answers with the new fact; whether earlier knowledge is kept is printed, not asserted.
#[test]
fn a_fact_is_learned() {
    const QUESTION: &str = "What is the capital of Atlantis?";
    let line = format!("{{\"prompt\":\"{QUESTION}\",\"completion\":\"Poseidonis.\"}}\n");
    let (data, folder) = (FileInFolder::new("fact.jsonl", line), TempDir::new().unwrap());
    let out = folder.path().to_str().unwrap();
    rullama(["train", "demo", data.arg(), "--out", out, "--device", "cpu", "--rank", "8"])
        .and(["--steps", "14", "--lr", "3e-3", "--schedule", "linear"])
        .stdout();
    let reply = |prompt: &str, adapter: &[&str]| {
        rullama(["run", "demo", "--device", "cpu", "--temperature", "0", prompt])
            .and(adapter)
            .stdout()
    };
    let adapter = ["--adapter", out];
    assert!(!reply(QUESTION, &[]).contains("Poseidonis"));
    has(&reply(QUESTION, &adapter), &["Poseidonis"]);
    has(&reply("What is the capital of France?", &[]), &["Paris"]);
    let kept = reply("What is 23 + 45?", &adapter);
    println!("23 + 45 with the adapter: {kept}");
}
