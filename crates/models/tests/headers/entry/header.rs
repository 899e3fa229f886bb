//! A header that can be modified, and a file that consists of the header only.

use std::{cell::RefCell, collections::HashMap, ops::Range, rc::Rc};

use pollster::block_on;
use rullama_gguf::{Array, DType, Gguf, Value, Writer};
use rullama_models::{
    Expected,
    decoder::Config,
    embedding::EmbeddingConfig,
    gemma4::{
        assistant::DraftConfig,
        audio::{AudioConfig, DirectAudio},
        diffusion::DiffusionConfig,
        vision::{DirectVision, VisionConfig},
    },
    siglip::SiglipConfig,
};
use rullama_source::{ByteSource, Bytes, Local, MemorySource, SourceError};
use rullama_testkit::golden;

/// Boundary values: limits of kernels and of integers.
pub(super) const NUMBERS: [u32; 40] = [
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
    12,
    15,
    16,
    17,
    24,
    31,
    32,
    33,
    40,
    48,
    63,
    64,
    65,
    80,
    96,
    127,
    128,
    129,
    160,
    255,
    256,
    257,
    511,
    512,
    1024,
    4096,
    65_536,
    1 << 20,
    (1 << 24) + 1,
    u32::MAX,
];
/// Maximum edits read from an input.
const MAX_EDITS: usize = 12;
/// Bytes per edit.
const EDIT: usize = 6;
/// Upper bound of tensor data, so that offsets fit into `u64`.
const MAX_BYTES: u128 = 1 << 60;

/// Metadata and tensors of a file.
#[derive(Debug, Clone)]
pub(crate) struct Header {
    entries: Vec<(String, Value)>,
    tensors: Vec<(String, Vec<u64>, DType)>,
}

/// One edit: kind, place and value.
struct Edit {
    kind: u8,
    at: usize,
    number: u32,
    /// Index among several candidates.
    which: usize,
}

fn edits(data: &[u8]) -> impl Iterator<Item = Edit> {
    let (edits, _) = data.as_chunks::<EDIT>();
    edits.iter().take(MAX_EDITS).map(|&[kind, low, high, how, a, b]| {
        let raw = u32::from(u16::from_le_bytes([a, b]));
        let number = match how {
            0..0xc0 => NUMBERS[usize::from(a) % NUMBERS.len()],
            _ => raw << (how & 15),
        };
        Edit { kind, at: u16::from_le_bytes([low, high]).into(), number, which: b.into() }
    })
}

thread_local! {
    static GOLDEN: RefCell<HashMap<&'static str, Header>> = RefCell::default();
}

impl Header {
    /// The header of a golden file, without its vocabulary.
    pub(crate) fn golden(name: &'static str) -> Self {
        GOLDEN.with_borrow_mut(|known| {
            known.entry(name).or_insert_with(|| Self::of_file(golden(name))).clone()
        })
    }

    /// Number of keys.
    pub(crate) fn keys(&self) -> usize {
        self.entries.len()
    }

    fn of_file(bytes: Vec<u8>) -> Self {
        let source = Rc::new(MemorySource::new("golden", bytes));
        let gguf = block_on(Gguf::open(source)).expect("a golden file opens");
        let entries = gguf.metadata().iter().filter(|entry| !entry.key.starts_with("tokenizer."));
        Self {
            entries: entries.map(|entry| (entry.key.clone(), entry.value.clone())).collect(),
            tensors: gguf
                .tensors()
                .iter()
                .map(|tensor| (tensor.name().into(), tensor.dims().to_vec(), tensor.dtype()))
                .collect(),
        }
    }

    /// Changes values, types and presence of keys.
    pub(crate) fn edit_keys(&mut self, data: &[u8]) {
        for Edit { kind, at, number, which } in edits(data) {
            if self.entries.is_empty() {
                return;
            }
            let at = at % self.entries.len();
            match kind % 8 {
                0..3 => change(&mut self.entries[at].1, number, which),
                3 if which < 64 => drop(self.entries.remove(at)),
                3 => self.entries[at].1 = of_other_type(number, which),
                _ => {}
            }
        }
    }

    /// Changes shapes, formats and presence of tensors.
    pub(crate) fn edit_tensors(&mut self, data: &[u8]) {
        for Edit { kind, at, number, which } in edits(data) {
            if self.tensors.is_empty() {
                return;
            }
            let at = at % self.tensors.len();
            let (name, dims, dtype) = &mut self.tensors[at];
            match kind % 8 {
                4 => {
                    let dim = which % dims.len();
                    dims[dim] = number.into();
                }
                5 if which < 128 => dims.reverse(),
                5 => dims.push(number.into()),
                6 => *dtype = DType::ALL[number as usize % DType::ALL.len()],
                // This tensor in all layers, as a converter would omit or quantise it.
                7 if which < 128 => {
                    let end = last_words(name).to_owned();
                    self.tensors.retain(|(name, ..)| last_words(name) != end);
                }
                7 => {
                    let end = last_words(name).to_owned();
                    let dtype = DType::ALL[number as usize % DType::ALL.len()];
                    let same_name =
                        self.tensors.iter_mut().filter(|(name, ..)| last_words(name) == end);
                    same_name.for_each(|(_, _, old)| *old = dtype);
                }
                _ => {}
            }
        }
    }

    /// Gives tensors the shapes that the keys imply, so that changed keys reach the graphs.
    pub(crate) fn fit_tensors(&mut self) {
        let Some(gguf) = Source::open(self) else { return };
        for wanted in expected(&gguf) {
            let dims: Vec<u64> = wanted.dims.iter().rev().map(|dim| *dim as u64).collect();
            let width = dims.first().copied().unwrap_or(1);
            match self.tensors.iter_mut().find(|(name, ..)| *name == wanted.name) {
                Some((_, known, dtype)) => {
                    *known = dims;
                    if !width.is_multiple_of(dtype.block_elements() as u64) {
                        *dtype = DType::F16;
                    }
                }
                None if wanted.optional || !wanted.instead.is_empty() => {}
                None => self.tensors.push((wanted.name, dims, DType::F32)),
            }
        }
    }

    /// The header's bytes, and the length of a file that has its tensors.
    fn bytes(&self) -> Option<(Vec<u8>, u64)> {
        let entries = self.entries.iter();
        let writer = entries.fold(Writer::new(), |file, (key, value)| file.kv(key, value.clone()));
        let mut bytes = writer.finish().ok()?;
        // The writer requires tensor data; here only the descriptions are written.
        bytes[8..16].copy_from_slice(&(self.tensors.len() as u64).to_le_bytes());
        let mut offset = 0u128;
        for (name, dims, dtype) in &self.tensors {
            bytes.extend((name.len() as u64).to_le_bytes());
            bytes.extend(name.as_bytes());
            bytes.extend((dims.len() as u32).to_le_bytes());
            dims.iter().for_each(|dim| bytes.extend(dim.to_le_bytes()));
            bytes.extend(dtype.id().to_le_bytes());
            bytes.extend(u64::try_from(offset).ok()?.to_le_bytes());
            let elements =
                dims.iter().try_fold(1u128, |all, dim| all.checked_mul((*dim).into()))?;
            let blocks = elements.div_ceil(dtype.block_elements() as u128);
            let length = blocks.checked_mul(dtype.block_bytes() as u128)?;
            offset = (offset + length).next_multiple_of(32);
            if offset > MAX_BYTES {
                return None;
            }
        }
        let length = bytes.len() as u128 + offset + 64;
        Some((bytes, u64::try_from(length).ok()?))
    }
}

/// A tensor's name without its layer.
fn last_words(name: &str) -> &str {
    match name.split_once("blk.") {
        Some((_, rest)) => rest.split_once('.').map_or(rest, |(_, end)| end),
        None => name,
    }
}

/// Sets a value of the same type.
fn change(value: &mut Value, number: u32, which: usize) {
    match value {
        Value::U32(n) => *n = number,
        Value::I32(n) => *n = number.cast_signed(),
        Value::U64(n) => *n = number.into(),
        Value::F32(x) => {
            const FLOATS: [f32; 6] = [0.0, -1.0, f32::NAN, f32::INFINITY, f32::MIN_POSITIVE, 1e30];
            *x = FLOATS[which % FLOATS.len()];
        }
        Value::Bool(flag) => *flag = !*flag,
        Value::Array(Array::U32(list)) if !list.is_empty() => {
            let at = which % list.len();
            list[at] = number;
        }
        Value::Array(Array::I32(list)) if !list.is_empty() => {
            let at = which % list.len();
            list[at] = number.cast_signed();
        }
        Value::Array(Array::Bool(list)) => match which % 3 {
            0 => list.truncate(number as usize),
            1 => list.push(true),
            _ => list.iter_mut().for_each(|flag| *flag = !*flag),
        },
        other => *other = Value::U32(number),
    }
}

fn of_other_type(number: u32, which: usize) -> Value {
    match which % 5 {
        0 => Value::String("clip".into()),
        1 => Value::I64(-i64::from(number)),
        2 => Value::Array(Array::U32(vec![number; which])),
        3 => Value::Array(Array::Bool(vec![true; which])),
        _ => Value::U32(number),
    }
}

/// The tensors that any configuration of a file requires.
fn expected(gguf: &Gguf) -> Vec<Expected> {
    let mut all = Vec::new();
    all.extend(Config::of_file(gguf).map(|config| config.expected()).unwrap_or_default());
    all.extend(EmbeddingConfig::of_file(gguf).map(|config| config.expected()).unwrap_or_default());
    all.extend(DraftConfig::of_file(gguf).map(|config| config.expected()).unwrap_or_default());
    all.extend(DiffusionConfig::of_file(gguf).map(|config| config.expected()).unwrap_or_default());
    let vision = VisionConfig::of_file(gguf).ok().flatten().map(|config| config.expected());
    let pixels = DirectVision::of_file(gguf).ok().flatten().map(|config| config.expected());
    let siglip = SiglipConfig::of_file(gguf).ok().flatten().map(|config| config.expected());
    let audio = AudioConfig::of_file(gguf).ok().flatten().map(|config| config.expected());
    let samples = DirectAudio::of_file(gguf).ok().flatten().map(|config| config.expected());
    all.extend([vision, pixels, siglip, audio, samples].into_iter().flatten().flatten());
    all
}

/// A file with this header whose tensor data is zero.
pub(crate) struct Source {
    header: Bytes,
    length: u64,
}

impl Source {
    /// Opens the file of a header; `None` if the reader refuses it (another fuzz target covers that).
    pub(crate) fn open(header: &Header) -> Option<Gguf> {
        let (bytes, length) = header.bytes()?;
        block_on(Gguf::open(Rc::new(Self { header: bytes.into(), length }))).ok()
    }
}

impl ByteSource for Source {
    fn len(&self) -> u64 {
        self.length
    }

    fn read(&self, range: Range<u64>) -> Local<'_, Result<Bytes, SourceError>> {
        // More than a reader of headers ever requests.
        const MOST: u64 = 64 << 20;
        let length = range.end.saturating_sub(range.start);
        let result = if range.end > self.length || length > MOST {
            Err(SourceError::TooLarge { name: "header".into(), len: length })
        } else {
            let byte =
                |at: u64| usize::try_from(at).ok().and_then(|at| self.header.get(at).copied());
            let there = range.clone().take_while(|at| byte(*at).is_some());
            let mut bytes: Vec<u8> = there.filter_map(byte).collect();
            bytes.resize(usize::try_from(length).unwrap_or(0), 0);
            Ok(bytes.into())
        };
        Box::pin(std::future::ready(result))
    }

    fn name(&self) -> &str {
        "header"
    }
}
