//! Logits, greedy continuations and intermediate values against the references.

use rullama_testkit::golden;
use safetensors::SafeTensors;
use tempfile::TempDir;

use crate::{
    models::{FileInFolder, MICRO, golden_arg},
    program::{has, rullama},
};

/// Tolerance of the references for f32 activations.
const TOLERANCE: f32 = 1e-3;

pub(crate) fn f32s(file: &SafeTensors<'_>, name: &str) -> Vec<f32> {
    let bytes = file.tensor(name).unwrap_or_else(|e| panic!("{name}: {e}")).data();
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

pub(crate) fn ids(file: &SafeTensors<'_>, name: &str) -> Vec<u32> {
    f32s(file, name).into_iter().map(f32::to_bits).collect()
}

#[track_caller]
pub(crate) fn assert_close(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let worst = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst < TOLERANCE, "{what} is off by {worst}");
}

fn check(model: &str, prompt: &str, device: &str) {
    let reference = golden(&format!("text/{model}.safetensors"));
    let reference = SafeTensors::deserialize(&reference).unwrap();
    let prompt_ids = ids(&reference, &format!("{prompt}.ids"));
    let file = FileInFolder::new("ids.json", format!("{prompt_ids:?}"));
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("x.safetensors");
    let path = golden_arg(&format!("gguf/{model}.gguf"));
    let output = rullama(["eval", &path, "--ids-file", file.arg(), "--device", device, "--json"])
        .and(["--greedy", "16", "--taps", "--out", out.to_str().unwrap()])
        .json();
    assert_eq!(output["tokens"], prompt_ids.len());

    let found = std::fs::read(&out).unwrap();
    let found = SafeTensors::deserialize(&found).unwrap();
    let width = found.tensor("logits").unwrap().shape()[1];
    assert_eq!(found.tensor("logits").unwrap().shape(), [prompt_ids.len(), width]);
    let (logits, expected) =
        (f32s(&found, "logits"), f32s(&reference, &format!("{prompt}.logits")));
    for (row, at) in ids(&reference, &format!("{prompt}.positions")).into_iter().enumerate() {
        let found = &logits[at as usize * width..][..width];
        assert_close(
            found,
            &expected[row * width..][..width],
            &format!("{model} on {device}: logits {at}"),
        );
    }
    let margins = f32s(&reference, &format!("{prompt}.greedy_margin"));
    let sure = margins.iter().take(16).take_while(|margin| **margin >= TOLERANCE).count();
    let greedy = ids(&reference, &format!("{prompt}.greedy"));
    assert_eq!(ids(&found, "greedy").len(), 16);
    assert_eq!(ids(&found, "greedy")[..sure], greedy[..sure]);
    if reference.tensor("mid.final_norm").is_ok() && prompt == "short" {
        check_taps(&found, &reference);
    }
}

/// Taps equal the reference's of the same name.
fn check_taps(found: &SafeTensors<'_>, reference: &SafeTensors<'_>) {
    let mut compared = 0;
    for name in found.names().into_iter().filter(|name| name.starts_with("mid.")) {
        if reference.tensor(name).is_ok() {
            let rows = found.tensor(name).unwrap().shape()[0];
            assert_eq!(rows, reference.tensor(name).unwrap().shape()[0], "{name}");
            if !name.ends_with("topk_index") {
                assert_close(&f32s(found, name), &f32s(reference, name), name);
            }
            compared += 1;
        }
    }
    assert!(compared >= 8, "only {compared} names are in the reference");
    for name in ["mid.embed_scaled", "mid.layer.0.attn_in", "mid.layer.1.out", "mid.final_norm"] {
        assert!(found.tensor(name).is_ok(), "{name}");
    }
}

#[test]
fn equals_the_references_on_the_cpu() {
    check("micro-e2b-BF16", "short", "cpu");
    check("micro-moe-BF16", "short", "cpu");
    check("micro-dense-BF16", "medium", "cpu");
    check("tiny-moe-Q4_K_M", "short", "cpu");
}

#[test]
fn equals_the_references_on_a_gpu() {
    check("micro-e2b-BF16", "short", "gpu");
}

#[test]
fn bad_ids_leave_no_file() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("x.safetensors");
    for (text, part) in [
        ("[1, 2", "not a JSON list"),
        ("{}", "not a JSON list"),
        ("[640]", "no token 640"),
        ("[-1]", "not a JSON list"),
    ] {
        let file = FileInFolder::new("ids.json", text);
        let model = golden_arg(MICRO);
        let program = rullama(["eval", &model, "--ids-file", file.arg(), "--device", "cpu"]);
        has(&program.and(["--out", out.to_str().unwrap()]).fails(1), &[part]);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
