//! Any bytes give a file or an error, never a panic or an endless loop.

use proptest::prelude::*;
use rullama_gguf::{DType, StringArray, Writer};

use crate::support::{Raw, open};

/// Opens a file and reads everything in it.
fn explore(file: Vec<u8>) {
    let Ok(gguf) = open(file) else { return };
    for entry in gguf.metadata() {
        let key = &entry.key;
        assert_eq!(gguf.get(key).map(|v| v.kind()), Some(entry.value.kind()));
        let _ = (gguf.u32(key), gguf.u64(key), gguf.f32(key), gguf.bool(key), gguf.str(key));
        let _ = (gguf.floats(key), gguf.bools(key), gguf.integers(key));
        if let Ok(strings) = gguf.strings(key) {
            assert_eq!(strings.iter().count(), strings.len());
        }
    }
    for tensor in gguf.tensors() {
        assert_eq!(gguf.tensor(tensor.name()), Some(tensor));
        let bytes = pollster::block_on(gguf.read_rows(tensor, 0..tensor.rows())).unwrap();
        assert_eq!(bytes.len() as u64, tensor.nbytes());
        let _ = tensor.check_finite(0, &bytes);
        let last = pollster::block_on(gguf.rows_f32(tensor, tensor.rows() - 1..tensor.rows()));
        assert_eq!(last.is_ok(), tensor.dtype().decodable());
    }
}

fn valid_file() -> Vec<u8> {
    let strings: StringArray = ["one", "two", "drei"].into_iter().collect();
    Writer::new()
        .alignment(32)
        .kv("general.architecture", "test")
        .kv("number", -1i64)
        .kv("strings", strings)
        .kv("floats", vec![0.5f32, 1.5])
        .kv("bools", vec![true, false])
        .tensor("a", &[32, 2], DType::Q4_0, vec![3; 36])
        .tensor("b", &[2, 2, 2, 2], DType::F16, vec![4; 32])
        .tensor("c", &[256], DType::Q4_K, vec![5; 144])
        .finish()
        .unwrap()
}

#[test]
fn the_valid_file_is_valid() {
    let gguf = open(valid_file()).unwrap();
    assert_eq!((gguf.metadata().len(), gguf.tensors().len()), (6, 3));
    explore(valid_file());
}

#[test]
fn every_byte_replaced() {
    let file = valid_file();
    for at in 0..file.len() {
        for byte in [0, 1, 0x7F, 0x80, 0xFF, file[at].wrapping_add(1)] {
            let mut file = file.clone();
            file[at] = byte;
            explore(file);
        }
    }
}

proptest! {
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        explore(bytes.clone());
        // Most bytes fail at once; with a valid start they get further.
        explore(Raw::header(2, 3).bytes(&bytes).0);
    }

    #[test]
    fn mutated_files(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        words in prop::collection::vec((any::<prop::sample::Index>(), any::<u64>()), 0..3),
        cut in any::<prop::sample::Index>(),
        keep in prop::bool::weighted(0.8),
    ) {
        let mut file = valid_file();
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        for (at, word) in words {
            let at = at.index(file.len() - 8);
            // Large and small words.
            let word = word >> (word % 64);
            file[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        if !keep {
            file.truncate(cut.index(file.len()));
        }
        explore(file);
    }
}
