use rullama_adapter::{AdapterError, EMBEDDING, Format, HEAD};
use rullama_testkit::golden;

use crate::support::{KEY, adapter, assert_same_updates, pair, read, safetensors};

const CONFIG: &str = r#"{"peft_type": "LORA", "r": 2, "lora_alpha": 8}"#;

fn a_and_b(key: &str) -> [String; 2] {
    [format!("{key}.lora_A.weight"), format!("{key}.lora_B.weight")]
}

#[test]
fn the_golden_adapter_is_equal_in_both_formats() {
    let config = String::from_utf8(golden("lora/micro-e2b-Q8_0-adapter/adapter_config.json"));
    let config = config.expect("text");
    let weights = golden("lora/micro-e2b-Q8_0-adapter/adapter_model.safetensors");
    let peft = read(weights, Some(&config)).expect("an adapter");
    let gguf = read(golden("gguf/micro-e2b-lora-F32.gguf"), None).expect("an adapter");
    assert_eq!(peft.pairs, gguf.pairs);
    assert_eq!(peft.pairs.len(), 6 * 5 + 3 * 2);
    assert!(peft.pairs.iter().all(|pair| pair.rank == 4 && pair.scale == 2.0));
    assert_eq!((peft.format, gguf.format), (Format::Peft, Format::Gguf));
    assert_eq!(gguf.architecture.as_deref(), Some("gemma4"));
    assert_eq!(peft.base_model.as_deref(), Some("models/micro-e2b"));
}

#[test]
fn adapter_names_and_text_only_prefixes_are_read() {
    for key in [
        "base_model.model.model.layers.3.mlp.up_proj.lora_A.default.weight",
        "base_model.model.model.language_model.layers.3.mlp.up_proj.lora_A.weight",
        "model.layers.3.mlp.up_proj.lora_A.weight",
    ] {
        let other = key.replace("lora_A", "lora_B");
        let file = safetensors(&[(key, &[2, 5]), (&other, &[3, 2])], &[]);
        let adapter = read(file, Some(CONFIG)).expect("an adapter");
        let [pair] = adapter.pairs.as_slice() else { panic!("one pair") };
        assert_eq!(pair.tensor, "blk.3.ffn_up.weight");
        assert_eq!((pair.rank, pair.rows, pair.columns, pair.scale), (2, 3, 5, 4.0));
        assert_eq!(pair.a, (0..10).map(|i| i as f32).collect::<Vec<_>>());
    }
}

#[test]
fn embedding_factors_become_rows_of_the_table() {
    let (a, b) = (
        "base_model.model.model.embed_tokens.lora_embedding_A",
        "base_model.model.model.embed_tokens.lora_embedding_B",
    );
    // Rank 2, five tokens, three columns.
    let file = safetensors(&[(a, &[2, 5]), (b, &[3, 2])], &[]);
    let adapter = read(file, Some(CONFIG)).expect("an adapter");
    let pair = &adapter.pairs[0];
    assert_eq!((pair.tensor.as_str(), pair.rows, pair.columns), (EMBEDDING, 5, 3));
    assert_eq!(pair.b[..4], [0.0, 5.0, 1.0, 6.0]);
    assert_eq!(pair.a, [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]);
}

#[test]
fn written_files_are_read_back() {
    let all = adapter(vec![
        pair("blk.0.attn_q.weight", 2, 6, 4, 2.0),
        pair("blk.0.attn_k.weight", 3, 2, 4, 0.5),
        pair("blk.11.ffn_down.weight", 2, 4, 8, 2.0),
        pair("blk.1.inp_gate.weight", 2, 3, 4, 1.5),
        pair("blk.1.proj.weight", 2, 4, 3, 2.0),
        pair("per_layer_model_proj.weight", 2, 9, 4, 2.0),
        pair(EMBEDDING, 2, 10, 4, 2.0),
        pair(HEAD, 2, 10, 4, 2.0),
    ]);
    let files = all.to_peft("a/model").expect("names for all");
    let read_back = read(files.weights.clone(), Some(&files.config)).expect("an adapter");
    assert_eq!(read_back.pairs, all.pairs);
    let without_config = read(files.weights, None).expect("the file holds its configuration");
    assert_eq!(without_config.pairs, all.pairs);
    let gguf = read(all.to_gguf().expect("a file"), None).expect("an adapter");
    assert_same_updates(&gguf.pairs, &all.pairs);
}

#[test]
fn tower_tensors_are_ignored_and_unknown_ones_refused() {
    let [a, b] = a_and_b(KEY);
    let tower = "base_model.model.model.vision_tower.encoder.layers.0.self_attn.q_proj";
    let [tower_a, tower_b] = a_and_b(tower);
    let known: [(&str, &[usize]); 4] =
        [(&a, &[2, 5]), (&b, &[3, 2]), (&tower_a, &[2, 9]), (&tower_b, &[9, 2])];
    let adapter = read(safetensors(&known, &[]), Some(CONFIG)).expect("an adapter");
    assert_eq!((adapter.pairs.len(), adapter.ignored.len()), (1, 2));

    let router = "base_model.model.model.layers.0.router.gate.lora_A.weight";
    let file = safetensors(&[(&a, &[2, 5]), (&b, &[3, 2]), (router, &[2, 5])], &[]);
    let error = read(file, Some(CONFIG)).expect_err("an unknown tensor");
    assert!(error.to_string().contains("router.gate"), "{error}");

    let file = safetensors(&known[2..], &[]);
    assert!(matches!(read(file, Some(CONFIG)), Err(AdapterError::Empty { .. })));
}

#[test]
fn broken_pairs_are_refused() {
    let [a, b] = a_and_b(KEY);
    let with = |tensors: &[(&str, &[usize])]| read(safetensors(tensors, &[]), Some(CONFIG));
    assert!(matches!(with(&[(&a, &[2, 5])]), Err(AdapterError::Missing { half: "B", .. })));
    assert!(matches!(with(&[(&b, &[5, 2])]), Err(AdapterError::Missing { half: "A", .. })));
    let ranks = with(&[(&a, &[2, 5]), (&b, &[3, 4])]);
    assert!(matches!(ranks, Err(AdapterError::Ranks { a: 2, b: 4, .. })));
    let rank = with(&[(&a, &[4, 5]), (&b, &[3, 4])]);
    assert!(matches!(rank, Err(AdapterError::WrongRank { found: 4, wanted: 2, .. })));
    let shape = with(&[(&a, &[2, 5, 1]), (&b, &[3, 2])]);
    assert!(matches!(shape, Err(AdapterError::NotAMatrix { .. })));
    let empty = with(&[(&a, &[2, 0]), (&b, &[3, 2])]);
    assert!(matches!(empty, Err(AdapterError::NotAMatrix { .. })));
    let other = a.replace("lora_A", "lora_A.other");
    let twice = with(&[(&a, &[2, 5]), (&other, &[2, 5]), (&b, &[3, 2])]);
    assert!(matches!(twice, Err(AdapterError::Twice { half: "A", .. })));
}

#[test]
fn a_file_without_config_needs_alpha_in_its_metadata() {
    let [a, b] = a_and_b(KEY);
    let tensors: [(&str, &[usize]); 2] = [(&a, &[2, 5]), (&b, &[3, 2])];
    let error = read(safetensors(&tensors, &[]), None).expect_err("no configuration");
    assert!(error.to_string().contains("adapter_config.json"), "{error}");
    let metadata = [("r", "2"), ("lora_alpha", "3")];
    let adapter = read(safetensors(&tensors, &metadata), None).expect("an adapter");
    assert_eq!(adapter.pairs[0].scale, 1.5);
}

#[test]
fn nan_is_refused() {
    let [a, b] = a_and_b(KEY);
    let mut file = safetensors(&[(&a, &[2, 5]), (&b, &[3, 2])], &[]);
    let end = file.len();
    file[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    assert!(matches!(read(file, Some(CONFIG)), Err(AdapterError::NotFinite { .. })));
}
