use rullama_adapter::{AdapterError, Misfit, Target};

use crate::support::{adapter, pair, pairs};

fn model(tensor: &str) -> Target {
    match tensor {
        "blk.0.attn_q.weight" => Target::Matrix { experts: 1, rows: 6, columns: 4 },
        "blk.0.ffn_down_exps.weight" => Target::Matrix { experts: 8, rows: 6, columns: 4 },
        "blk.1.attn_k.weight" => Target::Unused,
        _ => Target::Absent,
    }
}

#[test]
fn fitting_pairs_are_returned_and_pairs_without_effect_named() {
    let adapter = adapter(vec![
        pair("blk.0.attn_q.weight", 2, 6, 4, 1.0),
        pair("blk.1.attn_k.weight", 2, 6, 4, 1.0),
        pairs("blk.0.ffn_down_exps.weight", (8, 2), [6, 4], 1.0),
    ]);
    let fit = adapter.fit("gemma4", model).expect("adapter fits");
    assert_eq!(fit.pairs, [&adapter.pairs[0], &adapter.pairs[1]]);
    assert_eq!(fit.without_effect, ["blk.1.attn_k.weight"]);
}

#[test]
fn all_misfits_are_listed() {
    let mut adapter = adapter(vec![
        pair("blk.0.attn_q.weight", 2, 6, 5, 1.0),
        pair("blk.9.attn_q.weight", 2, 6, 4, 1.0),
        pairs("blk.0.ffn_down_exps.weight", (4, 2), [6, 4], 1.0),
    ]);
    adapter.architecture = Some("llama".into());
    let error = adapter.fit("gemma4", model).expect_err("nothing fits");
    let text = error.to_string();
    for word in ["llama", "gemma4", "blk.9.attn_q.weight", "6 × 4", "6 × 5", "4 experts"] {
        assert!(text.contains(word), "{text}");
    }
    let AdapterError::DoesNotFit { misfits, .. } = error else { panic!("{text}") };
    assert_eq!(misfits.len(), 4);
    assert!(matches!(misfits[0], Misfit::Architecture { .. }));
}
