//! Models split over several files.

use rullama_gguf::{DType, Gguf, GgufError, Part, Writer};

use crate::support::open;

/// A part with one tensor of four elements.
fn part(number: u16, count: u16, tensor: &str) -> Writer {
    let numbers = [f32::from(number); 4].iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>();
    let file = Writer::new().kv("split.no", number).kv("split.count", count);
    file.kv("split.tensors.count", i32::from(count)).tensor(tensor, &[4], DType::F32, numbers)
}

fn opened(file: Writer) -> Gguf {
    open(file.finish().unwrap()).unwrap()
}

fn three() -> [Writer; 3] {
    let first = part(0, 3, "a").kv("general.architecture", "gemma4");
    [first, part(1, 3, "b").alignment(64), part(2, 3, "c")]
}

fn join(parts: impl IntoIterator<Item = Writer>) -> Result<Gguf, GgufError> {
    let mut parts = parts.into_iter().map(opened);
    parts.next().unwrap().join(parts.collect())
}

#[test]
fn parts_are_joined() {
    let [first, ..] = three();
    assert_eq!(opened(first).part().unwrap(), Some(Part { number: 1, count: 3 }));
    let whole = join(three()).unwrap();
    assert_eq!(whole.part().unwrap(), None);
    assert_eq!(whole.str("general.architecture").unwrap(), "gemma4");
    for (at, name) in ["a", "b", "c"].into_iter().enumerate() {
        let tensor = whole.tensor(name).unwrap();
        assert_eq!(tensor.part(), at);
        let numbers = pollster::block_on(whole.rows_f32(tensor, 0..1)).unwrap();
        assert_eq!(numbers, [at as f32; 4]);
    }
}

#[test]
fn whole_models_have_no_part() {
    for file in [Writer::new(), Writer::new().kv("split.count", 1u16).kv("split.no", 0u16)] {
        assert_eq!(opened(file).part().unwrap(), None);
    }
}

/// Expects an error from joining these parts.
macro_rules! refuses {
    ($parts:expr, $pattern:pat) => {{
        let error = join($parts).expect_err("these are not the parts of one model");
        assert!(matches!(&error, $pattern), "{error:?}");
        assert!(!error.to_string().is_empty());
    }};
}

#[test]
fn mismatched_parts_are_refused() {
    let [a, b, c] = three();
    refuses!([a.clone(), b.clone()], GgufError::PartCount { count: 3, given: 2 });
    refuses!([a.clone(), c.clone(), b.clone()], GgufError::WrongPart { .. });
    refuses!([a.clone(), b.clone(), b.clone()], GgufError::WrongPart { .. });
    refuses!([b.clone(), a.clone(), c.clone()], GgufError::NotFirstPart { .. });
    refuses!([a.clone(), b.clone(), Writer::new()], GgufError::WrongPart { found: None, .. });
    refuses!([a.clone(), b.clone(), part(2, 4, "c")], GgufError::WrongPart { .. });
    refuses!([a.clone(), b.clone(), part(2, 3, "a")], GgufError::DuplicateTensor { .. });
    let foreign = part(2, 3, "c").kv("general.architecture", "llama");
    refuses!([a.clone(), b.clone(), foreign], GgufError::ForeignPart { .. });
    let more = part(2, 3, "c").tensor("d", &[1], DType::F32, vec![0; 4]);
    refuses!([a, b, more], GgufError::PartTensors { expected: 3, found: 4 });
    refuses!([Writer::new()], GgufError::NotFirstPart { part: None });
    // Parts with different tensor counts are of different models.
    let other = Writer::new().kv("split.no", 1u16).kv("split.count", 2u16);
    let other = other.kv("split.tensors.count", 7i32);
    refuses!([part(0, 2, "a"), other], GgufError::ForeignPart { .. });
}

#[test]
fn invalid_part_numbers() {
    let with = |number: u64, count: u64| {
        opened(Writer::new().kv("split.no", number).kv("split.count", count)).part()
    };
    assert!(matches!(with(3, 3), Err(GgufError::PartNumber { number: 3, count: 3 })));
    for (number, count) in [(0, 1 << 16), (1 << 16, 2), (0, u64::MAX)] {
        assert!(matches!(with(number, count), Err(GgufError::OutOfRange { .. })), "{count}");
    }
    let text = opened(Writer::new().kv("split.count", "two")).part();
    assert!(matches!(text, Err(GgufError::WrongType { .. })));
    let no_number = opened(Writer::new().kv("split.count", 2u16)).part();
    assert!(matches!(no_number, Err(GgufError::MissingKey { .. })));
}

#[test]
fn names_of_the_other_parts() {
    let part = Part { number: 1, count: 2 };
    assert_eq!(
        part.names("/m/x-00001-of-00002.gguf").unwrap(),
        ["/m/x-00001-of-00002.gguf", "/m/x-00002-of-00002.gguf"]
    );
    assert_eq!(
        part.names("https://h/a-00001-of-00002.gguf/x-00001-of-00002.gguf?d=1").unwrap()[1],
        "https://h/a-00001-of-00002.gguf/x-00002-of-00002.gguf?d=1"
    );
    for name in ["x.gguf", "x-00002-of-00002.gguf", "x-00001-of-00003.gguf", "x-1-of-2.gguf", ""] {
        let error = part.names(name).expect_err("another name");
        assert!(matches!(error, GgufError::PartName { .. }), "{error:?}");
    }
}
