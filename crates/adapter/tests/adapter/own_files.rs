use rullama_adapter::{AdapterError, EMBEDDING, Format, HEAD};

use crate::support::{read, safetensors};

const SAID: [(&str, &str); 3] =
    [("rank", "2"), ("alpha", "8"), ("target_modules", "attn_q, attn_o,embed_tokens,lm_head")];

#[test]
fn names_and_scale_are_those_of_the_format() {
    let file = safetensors(
        &[
            ("lora.blk.3.attn_o.A", &[2, 5]),
            ("lora.blk.3.attn_o.B", &[3, 2]),
            ("lora.blk.0.lm_head.A", &[2, 3]),
            ("lora.blk.0.lm_head.B", &[7, 2]),
            ("lora.blk.0.embed_tokens.A", &[2, 7]),
            ("lora.blk.0.embed_tokens.B", &[3, 2]),
            // Not a target: without meaning.
            ("lora.blk.0.ffn_up.A", &[2, 3]),
        ],
        &SAID,
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
fn a_target_without_tensors_stays_as_it_is() {
    let file =
        safetensors(&[("lora.blk.0.attn_q.A", &[2, 5]), ("lora.blk.0.attn_q.B", &[3, 2])], &SAID);
    assert_eq!(read(file, None).expect("an adapter").pairs.len(), 1);
}

#[test]
fn contradictions_are_refused() {
    let tensors: [(&str, &[usize]); 2] =
        [("lora.blk.0.attn_q.A", &[4, 5]), ("lora.blk.0.attn_q.B", &[3, 4])];
    let error = read(safetensors(&tensors, &SAID), None).expect_err("rank 4");
    assert!(matches!(error, AdapterError::WrongRank { found: 4, wanted: 2, .. }), "{error}");
    for missing in 0..3 {
        let mut said = SAID.to_vec();
        let (key, _) = said.remove(missing);
        let error = read(safetensors(&tensors, &said), None).expect_err(key);
        assert!(error.to_string().contains(key), "{error}");
    }
    let said = [("rank", "0"), SAID[1], SAID[2]];
    assert!(read(safetensors(&tensors, &said), None).is_err());
    let error = read(safetensors(&[("lora.blk.0.nothing.A", &[2, 2])], &SAID), None);
    assert!(matches!(error, Err(AdapterError::UnknownTensors { .. })), "{error:?}");
}
