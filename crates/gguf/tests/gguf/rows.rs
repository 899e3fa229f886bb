//! Reading parts of tensors.

use rullama_gguf::{DType, Gguf, GgufError, Writer, quant::quantize};

use crate::support::{Counting, open};

/// Element i of "f32" is i; "q8" holds the same.
fn file() -> Gguf {
    let numbers: Vec<f32> = (0..32 * 6).map(|i| i as f32).collect();
    let bytes = |dtype| quantize(dtype, &numbers).unwrap();
    let file = Writer::new()
        .tensor("f32", &[32, 3, 2], DType::F32, bytes(DType::F32))
        .tensor("q8", &[32, 6], DType::Q8_0, bytes(DType::Q8_0))
        .tensor("q8_k", &[256], DType::Q8_K, vec![0; 292])
        .finish();
    open(file.unwrap()).unwrap()
}

#[test]
fn rows_and_bytes() {
    pollster::block_on(async {
        let gguf = file();
        let tensor = gguf.tensor("f32").unwrap();
        let rows = gguf.rows_f32(tensor, 4..6).await.unwrap();
        assert_eq!((rows.len(), rows[0], rows[63]), (64, 128.0, 191.0));
        assert!(gguf.rows_f32(tensor, 6..6).await.unwrap().is_empty());
        assert_eq!(gguf.read_rows(tensor, 1..2).await.unwrap()[..4], 32f32.to_le_bytes());
        assert_eq!(gguf.read(tensor, 4..8).await.unwrap()[..], 1f32.to_le_bytes());
        let tensor = gguf.tensor("q8").unwrap();
        let row = gguf.rows_f32(tensor, 5..6).await.unwrap();
        assert!((row[31] - 191.0).abs() < 1.0, "{}", row[31]);
        assert_eq!(gguf.read_rows(tensor, 0..6).await.unwrap().len(), 6 * 34);
    });
}

#[test]
fn ranges_outside_are_refused() {
    pollster::block_on(async {
        let gguf = file();
        let tensor = gguf.tensor("f32").unwrap();
        #[expect(clippy::reversed_empty_ranges, reason = "reversed ranges must be refused")]
        for rows in [6..7, 0..7, 3..2, 0..u64::MAX, u64::MAX..u64::MAX] {
            let error = gguf.rows_f32(tensor, rows.clone()).await.unwrap_err();
            assert!(
                matches!(error, GgufError::OutsideTensor { what: "rows", len: 6, .. }),
                "{rows:?}"
            );
            let error = gguf.read_rows(tensor, rows.clone()).await.unwrap_err();
            assert!(matches!(error, GgufError::OutsideTensor { .. }), "{rows:?}");
        }
        for bytes in [768..769, 0..u64::MAX] {
            let error = gguf.read(tensor, bytes.clone()).await.unwrap_err();
            assert!(matches!(error, GgufError::OutsideTensor { what: "bytes", .. }), "{bytes:?}");
        }
    });
}

#[test]
fn formats_without_a_decoder_are_refused() {
    let gguf = file();
    let tensor = gguf.tensor("q8_k").unwrap();
    let error = pollster::block_on(gguf.rows_f32(tensor, 0..1)).unwrap_err();
    assert!(matches!(error, GgufError::NoDecoder { dtype: DType::Q8_K }), "{error:?}");
}

#[test]
fn small_tensors_are_read_together() {
    let number = |x: f32| x.to_le_bytes().to_vec();
    let far = 1 << 16;
    let file = Writer::new()
        .tensor("a", &[1], DType::F32, number(1.0))
        .tensor("b", &[1], DType::F32, number(2.0))
        .tensor("weight", &[far, 2], DType::F32, vec![0; 8 * far as usize])
        .tensor("c", &[1], DType::F32, number(3.0))
        .tensor("q8_k", &[256], DType::Q8_K, vec![0; 292])
        .finish()
        .unwrap();
    let length = file.len() as u64;
    let source = Counting::new(file, length);
    let gguf = source.open().unwrap();
    source.read.set(0);
    source.reads.set(0);
    let tensors: Vec<_> = ["c", "a", "b"].map(|name| gguf.tensor(name).unwrap()).into();
    let numbers = pollster::block_on(gguf.scattered_f32(&tensors)).unwrap();
    assert_eq!(numbers, [[3.0], [1.0], [2.0]]);
    assert_eq!((source.reads.get(), source.read.get()), (2, 40), "a to b, and c");
    assert!(pollster::block_on(gguf.scattered_f32(&[])).unwrap().is_empty());
    let refused = pollster::block_on(gguf.scattered_f32(&[gguf.tensor("q8_k").unwrap()]));
    assert!(matches!(refused, Err(GgufError::NoDecoder { dtype: DType::Q8_K })), "{refused:?}");
}
