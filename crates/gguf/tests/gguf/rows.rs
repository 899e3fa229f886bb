//! Reading parts of tensors.

use rullama_gguf::{DType, Gguf, GgufError, Writer, quant::quantize};

use crate::support::open;

/// Element i of "f32" is i; "q8" holds the same.
fn file() -> Gguf {
    let numbers: Vec<f32> = (0..32 * 6).map(|i| i as f32).collect();
    let bytes = |dtype| quantize(dtype, &numbers).unwrap();
    let file = Writer::new()
        .tensor("f32", &[32, 3, 2], DType::F32, bytes(DType::F32))
        .tensor("q8", &[32, 6], DType::Q8_0, bytes(DType::Q8_0))
        .tensor("iq1", &[256], DType::IQ1_S, vec![0; 50])
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
        #[expect(clippy::reversed_empty_ranges, reason = "that is what is to be refused")]
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
    let tensor = gguf.tensor("iq1").unwrap();
    let error = pollster::block_on(gguf.rows_f32(tensor, 0..1)).unwrap_err();
    assert!(matches!(error, GgufError::NoDecoder { dtype: DType::IQ1_S }), "{error:?}");
}
