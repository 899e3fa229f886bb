//! Opening a large file reads only its header.

use rullama_gguf::{DType, GgufError, StringArray, Writer};
use rullama_testkit::real_vocabulary;

use crate::support::Counting;

#[test]
fn the_real_vocabulary() {
    let bytes = real_vocabulary();
    let len = bytes.len() as u64;
    let source = Counting::new(bytes, len);
    let gguf = source.open().unwrap();
    let tokens = gguf.strings("tokenizer.ggml.tokens").unwrap();
    assert_eq!((tokens.len(), tokens.iter().len()), (262_144, 262_144));
    assert_eq!(
        (tokens.get(0), tokens.get(2), tokens.get(262_144)),
        (Some("<pad>"), Some("<bos>"), None)
    );
    assert_eq!(gguf.strings("tokenizer.ggml.merges").unwrap().len(), 514_906);
    assert_eq!(gguf.floats("tokenizer.ggml.scores").unwrap().len(), 262_144);
    assert_eq!(gguf.integers("tokenizer.ggml.token_type").unwrap().len(), 262_144);
    assert_eq!(source.read.get(), len, "every byte is read once");
    assert!(source.reads.get() <= 8, "{}", source.reads.get());
}

#[test]
fn strings_by_index_and_by_iterator_are_equal() {
    let strings: StringArray = ["", "a", "ß", "", "日本"].into_iter().collect();
    let by_index: Vec<_> = (0..strings.len()).map(|i| strings.get(i).unwrap()).collect();
    assert_eq!(by_index, ["", "a", "ß", "", "日本"]);
    assert_eq!(strings.iter().collect::<Vec<_>>(), by_index);
    assert_eq!(strings.get(5), None);
}

/// A file that claims a tensor of 7 GB after a header of about `padding` bytes.
fn large_file(padding: usize) -> (Vec<u8>, u64, u64) {
    const ROWS: u64 = 7 << 18;
    let mut header = Writer::new()
        .kv("general.architecture", "test")
        .kv("padding", "x".repeat(padding))
        .tensor("token_embd.weight", &[1024, 1], DType::F32, vec![0; 4096])
        .finish()
        .unwrap();
    header.truncate(header.len() - 4096);
    let dim = header.windows(8).rposition(|w| w == 1024u64.to_le_bytes()).unwrap() + 8;
    header[dim..dim + 8].copy_from_slice(&ROWS.to_le_bytes());
    let len = header.len() as u64;
    (header, len, len + ROWS * 4096)
}

#[test]
fn only_the_header_of_a_large_file_is_read() {
    for (padding, slack) in [(1_000, 256 << 10), (300_000, 1 << 20), (16 << 20, 4 << 20)] {
        let (file, header, len) = large_file(padding);
        assert!(len > 7_000_000_000);
        let source = Counting::new(file, len);
        let gguf = source.open().unwrap();
        let read = source.read.get();
        assert!((header - 31..=header + slack).contains(&read), "{read} for a header of {header}");

        let tensor = gguf.tensor("token_embd.weight").unwrap();
        let row = pollster::block_on(gguf.rows_f32(tensor, 1_000_000..1_000_001)).unwrap();
        assert_eq!((row.len(), source.read.get()), (1024, read + 4096));
    }
}

#[test]
fn items_across_chunk_boundaries() {
    // For every shift, strings and numbers cross the chunk boundaries at 256 KiB, 768 KiB and so on.
    for shift in 0..9 {
        let strings: StringArray = (0..200_000).map(|i| format!("{i}")).collect();
        let numbers: Vec<u64> = (0..200_000).collect();
        let file = Writer::new()
            .kv("shift", "x".repeat(shift))
            .kv("strings", strings.clone())
            .kv("numbers", numbers.clone())
            .finish()
            .unwrap();
        let len = file.len() as u64;
        let gguf = Counting::new(file, len).open().unwrap();
        assert_eq!(gguf.strings("strings").unwrap(), &strings);
        assert_eq!(gguf.get("numbers"), Some(&numbers.into()));
    }
}

#[test]
fn truncation_in_a_later_chunk_is_an_error() {
    let strings: StringArray = (0..100_000).map(|i| format!("{i}")).collect();
    let file = Writer::new().kv("strings", strings).finish().unwrap();
    for cut in (300_000..file.len()).step_by(100_003) {
        let error = Counting::new(&file[..cut], cut as u64).open().unwrap_err();
        let expected =
            matches!(error, GgufError::StringPastEnd { .. } | GgufError::Truncated { .. });
        assert!(expected || matches!(error, GgufError::ArrayPastEnd { .. }), "{error:?}");
    }
}
