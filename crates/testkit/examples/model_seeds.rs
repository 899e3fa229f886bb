//! Writes the seeds of `fuzz/corpus` that are not text: vocabularies, saved sessions, adapters and checkpoints.
//!
//! `cargo run -p rullama-testkit --features models --example model_seeds`

use std::{collections::HashMap, path::Path};

use rullama_gguf::{Array, DType, StringArray, Value, Writer, quant::quantize};
use rullama_testkit::{entry::session_seed, golden};

type Seeds = Vec<(&'static str, Vec<u8>)>;

fn main() -> std::io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (target, seeds) in [
        ("vocabulary", vocabularies()),
        ("session", sessions()),
        ("adapter", adapters()),
        ("checkpoint", checkpoints()),
    ] {
        std::fs::create_dir_all(corpus.join(target))?;
        for (name, bytes) in seeds {
            std::fs::write(corpus.join(target).join(name), bytes)?;
        }
    }
    Ok(())
}

/// A vocabulary of a few letters, with byte fallback.
fn vocabulary(more: &[&str], merges: &[&str], scores: bool) -> Writer {
    let bytes: Vec<String> = (0..=255).map(|byte| format!("<0x{byte:02X}>")).collect();
    let specials = ["<pad>", "<eos>", "<bos>", "<unk>"];
    let letters = ["a", "b", "c", "▁", "ab", "abc", "▁a"];
    let tokens: Vec<&str> = specials
        .into_iter()
        .chain(bytes.iter().map(String::as_str))
        .chain(letters)
        .chain(more.iter().copied())
        .collect();
    let kind = |token: &&str| match *token {
        "<unk>" => 2,
        "<pad>" | "<eos>" | "<bos>" => 3,
        byte if byte.starts_with("<0x") => 6,
        _ => 1,
    };
    let types: Vec<i32> = tokens.iter().map(kind).collect();
    let numbers: Vec<f32> = (0..tokens.len()).map(|id| -(id as f32)).collect();
    let strings =
        |list: &[&str]| Value::Array(Array::String(list.iter().copied().collect::<StringArray>()));
    let mut writer = Writer::new()
        .kv("general.architecture", "gemma4")
        .kv("tokenizer.ggml.model", "gemma4")
        .kv("tokenizer.ggml.tokens", strings(&tokens))
        .kv("tokenizer.ggml.token_type", types)
        .kv("tokenizer.ggml.bos_token_id", 2u32)
        .kv("tokenizer.ggml.eos_token_id", 1u32)
        .kv("tokenizer.ggml.unknown_token_id", 3u32);
    if !merges.is_empty() {
        writer = writer.kv("tokenizer.ggml.merges", strings(merges));
    }
    if scores { writer.kv("tokenizer.ggml.scores", numbers) } else { writer }
}

fn finish(writer: Writer) -> Vec<u8> {
    writer.finish().expect("a valid file")
}

fn vocabularies() -> Seeds {
    let runs: Vec<String> = (2..40).map(|n| "a".repeat(n)).collect();
    let runs: Vec<&str> = runs.iter().map(String::as_str).collect();
    let long = "ab".repeat(4096);
    let merges = ["a b", "ab c", "▁ a"];
    vec![
        ("merges", finish(vocabulary(&[], &merges, false))),
        ("merges-and-scores", finish(vocabulary(&[], &merges, true))),
        ("scores", finish(vocabulary(&[], &[], true))),
        ("scores-of-runs", finish(vocabulary(&runs, &[], true))),
        ("scores-of-a-long-token", finish(vocabulary(&[&long], &[], true))),
        ("neither", finish(vocabulary(&[], &[], false))),
        ("unknown-piece", finish(vocabulary(&[], &["x y"], false))),
        (
            "template",
            finish(vocabulary(&[], &merges, false).kv("tokenizer.chat_template", "<|turn>{{ x }}")),
        ),
    ]
}

fn sessions() -> Seeds {
    let all = session_seed(&[2, 5, 6, 7]);
    let sized = |index: usize, value: u64| {
        let mut bytes = all.clone();
        bytes[1 + index * 8..][..8].copy_from_slice(&value.to_le_bytes());
        bytes
    };
    vec![
        ("empty", session_seed(&[])),
        ("one", session_seed(&[2])),
        ("several", all.clone()),
        ("full", session_seed(&[5; 15])),
        ("cut", all[..all.len() / 2].to_vec()),
        ("endless-queue", sized(3, u64::MAX)),
        ("endless-block", sized(2, u64::MAX - 511)),
        ("no-chunk", sized(1, 0)),
    ]
}

/// A configuration and weights in the format of the entry point `adapter`.
fn joined(config: &str, weights: &[u8]) -> Vec<u8> {
    let length = u16::try_from(config.len()).expect("a short text");
    [&length.to_le_bytes(), config.as_bytes(), weights].concat()
}

fn safetensors(tensors: &[(&str, [usize; 2])], about: HashMap<String, String>) -> Vec<u8> {
    let bytes: Vec<Vec<u8>> = tensors.iter().map(|(_, [a, b])| vec![0; a * b * 4]).collect();
    let views = tensors.iter().zip(&bytes).map(|((name, shape), bytes)| {
        let view =
            safetensors::tensor::TensorView::new(safetensors::Dtype::F32, shape.to_vec(), bytes);
        (name.to_string(), view.expect("the size matches the shape"))
    });
    safetensors::serialize(views, Some(about)).expect("it is written")
}

fn adapters() -> Seeds {
    const Q: &str = "base_model.model.model.layers.0.self_attn.q_proj";
    let (a, b) = (format!("{Q}.lora_A.weight"), format!("{Q}.lora_B.weight"));
    let config =
        r#"{"peft_type":"LORA","r":2,"lora_alpha":4,"target_modules":["q_proj"],"bias":"none"}"#;
    let peft = safetensors(&[(&a, [2, 8]), (&b, [16, 2])], HashMap::new());
    let ragged = safetensors(&[(&a, [2, 8]), (&b, [16, 3])], HashMap::new());
    let alone = safetensors(&[(&a, [2, 8])], HashMap::new());
    let half =
        |dims: [u64; 2]| (dims, quantize(DType::F32, &vec![0.5; (dims[0] * dims[1]) as usize]));
    let mut gguf = Writer::new()
        .kv("general.type", "adapter")
        .kv("general.architecture", "gemma4")
        .kv("adapter.type", "lora")
        .kv("adapter.lora.alpha", 4.0f32);
    for (end, (dims, bytes)) in [("a", half([8, 2])), ("b", half([2, 16]))] {
        let name = format!("blk.0.attn_q.weight.lora_{end}");
        gguf = gguf.tensor(name, &dims, DType::F32, bytes.expect("floats"));
    }
    let gguf = finish(gguf);
    let dora = config.replace("\"r\":2", "\"r\":2,\"use_dora\":true");
    let ranks = config
        .replace("\"r\":2", "\"r\":2,\"rank_pattern\":{\"q_proj\":4294967295},\"use_rslora\":true");
    vec![
        ("peft", joined(config, &peft)),
        ("peft-alone", joined("", &peft)),
        ("peft-ragged", joined(config, &ragged)),
        ("peft-half", joined(config, &alone)),
        ("peft-dora", joined(&dora, &peft)),
        ("peft-ranks", joined(&ranks, &peft)),
        ("gguf", joined("", &gguf)),
        ("gguf-cut", joined("", &gguf[..gguf.len() - 40])),
        ("model", joined("", &golden("gguf/micro-moe-Q8_0.gguf")[..2000])),
    ]
}

fn checkpoints() -> Seeds {
    let about = |text: &str| HashMap::from([("rullama_checkpoint".to_owned(), text.to_owned())]);
    let text = r#"{"steps":2,"model":"m","data":"d","options":"o","losses":[1.5,0.5],"evaluations":[[1,2.0]]}"#;
    let tensors: [(&str, [usize; 2]); 2] = [("a.weight", [2, 4]), ("a.moment", [2, 4])];
    let whole = safetensors(&tensors, about(text));
    let mut long = whole.clone();
    long[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    vec![
        ("whole", whole.clone()),
        ("cut", whole[..whole.len() - 9].to_vec()),
        ("header-cut", whole[..20].to_vec()),
        ("header-long", long),
        ("no-about", safetensors(&tensors, HashMap::new())),
        ("about-wrong", safetensors(&tensors, about(r#"{"steps":-1}"#))),
    ]
}
