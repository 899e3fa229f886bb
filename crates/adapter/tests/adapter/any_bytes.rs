use proptest::prelude::*;

use crate::support::{KEY, adapter, assert_same_updates, pair, read, safetensors};

fn good() -> Vec<u8> {
    let [a, b] = [format!("{KEY}.lora_A.weight"), format!("{KEY}.lora_B.weight")];
    safetensors(&[(&a, &[2, 5]), (&b, &[3, 2])], &[("r", "2"), ("lora_alpha", "4")])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), config in ".{0,60}") {
        let _ = read(bytes, Some(&config));
    }

    #[test]
    fn a_flipped_byte_is_read_or_refused(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let gguf = adapter(vec![pair("blk.0.attn_q.weight", 2, 3, 4, 1.0)]).to_gguf().expect("a file");
        for mut file in [good(), gguf] {
            let at = at.index(file.len());
            file[at] = byte;
            let _ = read(file, None);
        }
    }

    #[test]
    fn a_truncated_file_is_refused(at in any::<prop::sample::Index>()) {
        let mut file = good();
        file.truncate(at.index(file.len()));
        prop_assert!(read(file, None).is_err());
    }

    #[test]
    fn both_formats_round_trip(
        sizes in prop::collection::vec((1usize..4, 1usize..6, 1usize..6, 0.1f32..4.0), 1..5),
    ) {
        let pairs = sizes.iter().enumerate().map(|(layer, (rank, rows, columns, scale))| {
            pair(&format!("blk.{layer}.ffn_up.weight"), *rank, *rows, *columns, *scale)
        });
        let all = adapter(pairs.collect());
        let files = all.to_peft("base").expect("names for all");
        let peft = read(files.weights, Some(&files.config)).expect("an adapter");
        assert_same_updates(&peft.pairs, &all.pairs);
        let gguf = read(all.to_gguf().expect("a file"), None).expect("an adapter");
        assert_same_updates(&gguf.pairs, &all.pairs);
    }
}
