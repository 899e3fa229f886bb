//! Invalid values in the first 24 bytes.

use rullama_gguf::GgufError;

use crate::support::{Counting, Raw, open, refuses};

#[test]
fn empty_file() {
    refuses!(vec![], GgufError::Truncated { at: 0, needed: 4, len: 0 });
}

#[test]
fn wrong_magic() {
    refuses!(&b"GGML\x03\0\0\0"[..], GgufError::WrongMagic { found: [b'G', b'G', b'M', b'L'] });
    refuses!(&b"<htm"[..], GgufError::WrongMagic { .. });
}

#[test]
fn version_0_1_4() {
    for version in [0, 1, 4, 0xFFFF, u32::MAX] {
        let file = Raw(b"GGUF".to_vec()).u32(version).u64(0).u64(0).0;
        refuses!(file, GgufError::UnsupportedVersion { found } if *found == version);
    }
}

#[test]
fn version_2_and_3_are_read() {
    for version in [2, 3] {
        let gguf = open(Raw(b"GGUF".to_vec()).u32(version).u64(0).u64(0).0).unwrap();
        assert_eq!((gguf.version(), gguf.alignment()), (version, 32));
        assert!(gguf.metadata().is_empty() && gguf.tensors().is_empty());
    }
}

#[test]
fn byte_swapped() {
    let swapped =
        |version: u32| Raw(b"GGUF".to_vec()).bytes(&version.to_be_bytes()).bytes(&[0; 16]).0;
    refuses!(swapped(3), GgufError::BigEndian);
    refuses!(swapped(2), GgufError::BigEndian);
    refuses!(&b"FUGG\0\0\0\x03"[..], GgufError::BigEndian);
}

#[test]
fn key_count_of_2_to_the_63() {
    refuses!(Raw::header(0, 1 << 63).0, GgufError::KeyCount { count, .. } if *count == 1 << 63);
    refuses!(Raw::header(0, u64::MAX).0, GgufError::KeyCount { .. });
    refuses!(Raw::header(0, 1).bytes(&[0; 12]).0, GgufError::KeyCount { count: 1, .. });
}

#[test]
fn tensor_count_of_2_to_the_63() {
    refuses!(Raw::header(1 << 63, 0).0, GgufError::TensorCount { count, .. } if *count == 1 << 63);
    refuses!(Raw::header(u64::MAX, 0).0, GgufError::TensorCount { .. });
    refuses!(Raw::header(1, 0).bytes(&[0; 31]).0, GgufError::TensorCount { count: 1, .. });
    // Either fits in the file, not both.
    refuses!(Raw::header(1, 1).bytes(&[0; 44]).0, GgufError::TensorCount { count: 1, .. });
}

#[test]
fn counts_that_would_fit_a_huge_file() {
    let source = Counting::new(Raw::header(0, 1 << 40).0, 1 << 50);
    assert!(matches!(source.open(), Err(GgufError::KeyCount { limit: 0x2_0000, .. })));
    let source = Counting::new(Raw::header(1 << 40, 0).0, 1 << 50);
    assert!(matches!(source.open(), Err(GgufError::TensorCount { limit: 0x2_0000, .. })));
    assert_eq!(source.reads.get(), 1);
}

#[test]
fn a_source_with_short_reads() {
    struct Short;
    impl rullama_source::ByteSource for Short {
        fn len(&self) -> u64 {
            100
        }
        fn read(
            &self,
            _: std::ops::Range<u64>,
        ) -> rullama_source::Local<'_, Result<rullama_source::Bytes, rullama_source::SourceError>>
        {
            Box::pin(std::future::ready(Ok(rullama_source::Bytes::from_static(b"GGUF"))))
        }
        fn name(&self) -> &str {
            "short"
        }
    }
    let error = pollster::block_on(rullama_gguf::Gguf::open(std::rc::Rc::new(Short))).unwrap_err();
    assert!(matches!(error, GgufError::ShortRead { at: 0, requested: 100, got: 4 }), "{error:?}");
}
