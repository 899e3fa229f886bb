use rullama_adapter::{AdapterError, EMBEDDING, Format, HEAD};

use crate::support::{read, safetensors};

const METADATA: [(&str, &str); 3] =
    [("rank", "2"), ("alpha", "8"), ("target_modules", "attn_q, attn_o,embed_tokens,lm_head")];

#[test]
fn names_and_scale_follow_the_format() {
    let file = safetensors(
        &[
            ("lora.blk.3.attn_o.A", &[2, 5]),
            ("lora.blk.3.attn_o.B", &[3, 2]),
            ("lora.blk.0.lm_head.A", &[2, 3]),
            ("lora.blk.0.lm_head.B", &[7, 2]),
            ("lora.blk.0.embed_tokens.A", &[2, 7]),
            ("lora.blk.0.embed_tokens.B", &[3, 2]),
            // Not in `target_modules`: ignored.
            ("lora.blk.0.ffn_up.A", &[2, 3]),
        ],
        &METADATA,
    );
    let adapter = read(file, None).expect("an adapter");
    assert_eq!(adapter.format, Format::Rullama);
    let found: Vec<_> = adapter
        .pairs
        .iter()
        .map(|pair| (pair.tensor.as_str(), pair.rows, pair.columns, pair.scale))
        .collect();
    let wanted =
        [("blk.3.attn_output.weight", 3, 5, 4.0), (HEAD, 7, 3, 4.0), (EMBEDDING, 7, 3, 4.0)];
    assert_eq!(found, wanted);
    assert_eq!(adapter.ignored, ["lora.blk.0.ffn_up.A"]);
}

#[test]
fn a_target_without_tensors_is_not_adapted() {
    let file = safetensors(
        &[("lora.blk.0.attn_q.A", &[2, 5]), ("lora.blk.0.attn_q.B", &[3, 2])],
        &METADATA,
    );
    assert_eq!(read(file, None).expect("an adapter").pairs.len(), 1);
}

#[test]
fn contradictions_are_refused() {
    let tensors: [(&str, &[usize]); 2] =
        [("lora.blk.0.attn_q.A", &[4, 5]), ("lora.blk.0.attn_q.B", &[3, 4])];
    let error = read(safetensors(&tensors, &METADATA), None).expect_err("rank 4");
    assert!(matches!(error, AdapterError::WrongRank { found: 4, wanted: 2, .. }), "{error}");
    for missing in 0..3 {
        let mut metadata = METADATA.to_vec();
        let (key, _) = metadata.remove(missing);
        let error = read(safetensors(&tensors, &metadata), None).expect_err(key);
        assert!(error.to_string().contains(key), "{error}");
    }
    let metadata = [("rank", "0"), METADATA[1], METADATA[2]];
    assert!(read(safetensors(&tensors, &metadata), None).is_err());
    let error = read(safetensors(&[("lora.blk.0.nothing.A", &[2, 2])], &METADATA), None);
    assert!(matches!(error, Err(AdapterError::UnknownTensors { .. })), "{error:?}");
}
