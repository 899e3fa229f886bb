//! Errors of GGUF files.
//!
//! Names from the file are escaped: they may contain anything, including terminal control codes.

use rullama_source::SourceError;

use crate::{dtype::DType, split::Part, value::Kind};

/// Why a file could not be opened, read, decoded or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of each variant explains its fields")]
pub enum GgufError {
    // Reading
    /// The source could not be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The source returned fewer or more bytes than requested.
    #[error("requested {requested} bytes at byte {at} but got {got}: try again")]
    ShortRead { at: u64, requested: u64, got: u64 },
    /// The file ends inside its header.
    #[error(
        "the file ends at byte {len}, but {needed} bytes are needed at byte {at}: it is truncated, download it again"
    )]
    Truncated { at: u64, needed: u64, len: u64 },
    /// The header is larger than the limit.
    #[error(
        "the header claims to reach byte {end}, more than the {limit} allowed: the file is damaged or hostile"
    )]
    HeaderTooLarge { end: u64, limit: u64 },

    // The first 24 bytes
    /// The file is something else.
    #[error("not a GGUF file: it starts with {found:02x?} instead of \"GGUF\"")]
    WrongMagic { found: [u8; 4] },
    /// Every number in the file is byte-swapped.
    #[error("big-endian GGUF files are not supported: convert the file to little-endian")]
    BigEndian,
    /// A version with another layout.
    #[error("GGUF version {found} is not supported (only 2 and 3): convert the file again")]
    UnsupportedVersion { found: u32 },
    /// More metadata than fits in the file, or than the limit.
    #[error(
        "the file claims {count} metadata entries, but can have at most {limit}: it is damaged or truncated, download it again"
    )]
    KeyCount { count: u64, limit: u64 },
    /// More tensors than fit in the file, or than the limit.
    #[error(
        "the file claims {count} tensors, but can have at most {limit}: it is damaged or truncated, download it again"
    )]
    TensorCount { count: u64, limit: u64 },

    // Metadata
    /// A string reaches past the end of the file.
    #[error(
        "a string of {length} bytes at byte {at} reaches past the file's {len} bytes: it is damaged or truncated, download it again"
    )]
    StringPastEnd { at: u64, length: u64, len: u64 },
    /// An array has more elements than the rest of the file could hold.
    #[error(
        "{key:?}: {count} elements at byte {at} cannot fit in the file's {len} bytes: it is damaged or truncated, download it again"
    )]
    ArrayPastEnd { key: String, count: u64, at: u64, len: u64 },
    /// A metadata key is longer than the limit.
    #[error(
        "a metadata key at byte {at} has {length} bytes, more than the {limit} allowed: the file is damaged"
    )]
    KeyTooLong { at: u64, length: u64, limit: u64 },
    /// A metadata key is not text.
    #[error("the metadata key at byte {at} is not UTF-8: the file is damaged")]
    KeyNotUtf8 { at: u64 },
    /// Two entries have the same key.
    #[error("metadata key {key:?} appears twice: the file is damaged")]
    DuplicateKey { key: String },
    /// A type of value that does not exist.
    #[error("{key:?}: unknown value type {id}: the file is damaged or newer than this program")]
    UnknownValueType { key: String, id: u32 },
    /// An array of arrays.
    #[error("{key:?}: nested arrays are not supported")]
    NestedArray { key: String },
    /// A string value is not text.
    #[error("{key:?}: the value is not UTF-8: the file is damaged")]
    ValueNotUtf8 { key: String },
    /// A string of an array is not text.
    #[error("{key:?}: string {index} is not UTF-8: the file is damaged")]
    ElementNotUtf8 { key: String, index: u64 },
    /// A bool is neither 0 nor 1.
    #[error("{key:?}: a bool is stored as {byte}, neither 0 nor 1: the file is damaged")]
    InvalidBool { key: String, byte: u8 },

    // Alignment
    /// The alignment is not a `u32`.
    #[error("general.alignment is stored as {found}, it must be u32: convert the file again")]
    AlignmentType { found: Kind },
    /// The alignment is zero.
    #[error("general.alignment is 0: convert the file again")]
    AlignmentZero,
    /// The alignment is not a power of two.
    #[error("general.alignment is {alignment}, not a power of two: convert the file again")]
    AlignmentNotPowerOfTwo { alignment: u32 },
    /// The alignment is larger than the limit.
    #[error("general.alignment is {alignment}, more than the {limit} allowed: the file is damaged")]
    AlignmentTooLarge { alignment: u32, limit: u32 },

    // Tensors
    /// A tensor's name is longer than the limit.
    #[error(
        "a tensor name at byte {at} has {length} bytes, more than the {limit} allowed: the file is damaged"
    )]
    NameTooLong { at: u64, length: u64, limit: u64 },
    /// A tensor's name is not text.
    #[error("the tensor name at byte {at} is not UTF-8: the file is damaged")]
    NameNotUtf8 { at: u64 },
    /// Two tensors have the same name.
    #[error("tensor {tensor:?} appears twice: the file is damaged")]
    DuplicateTensor { tensor: String },
    /// A tensor without dimensions.
    #[error("tensor {tensor:?} has no dimensions: the file is damaged")]
    NoDimensions { tensor: String },
    /// A tensor with more dimensions than the format allows.
    #[error("tensor {tensor:?} has {count} dimensions, at most 4 are allowed: the file is damaged")]
    TooManyDimensions { tensor: String, count: u64 },
    /// A dimension of size zero.
    #[error("tensor {tensor:?}: dimension {axis} is 0: the file is damaged")]
    ZeroDimension { tensor: String, axis: usize },
    /// The number of elements does not fit in 64 bits.
    #[error("tensor {tensor:?}: the product of its dimensions {dims:?} is too large")]
    ElementsOverflow { tensor: String, dims: Vec<u64> },
    /// The number of bytes does not fit in 64 bits.
    #[error("tensor {tensor:?}: {elements} elements of {dtype} are too many bytes")]
    BytesOverflow { tensor: String, elements: u64, dtype: DType },
    /// A row ends inside a block.
    #[error("tensor {tensor:?}: rows of {row_len} elements are not whole blocks of {dtype}")]
    RaggedRow { tensor: String, row_len: u64, dtype: DType },
    /// An unknown tensor type.
    #[error(
        "tensor {tensor:?} has unknown type {id}: the file is damaged or newer than this program"
    )]
    UnknownDtype { tensor: String, id: u32 },
    /// A tensor type that was removed from the format.
    #[error("tensor {tensor:?} has the retired type {name} ({id}): quantise the model again")]
    RetiredDtype { tensor: String, id: u32, name: &'static str },
    /// A tensor does not start at a multiple of the alignment.
    #[error(
        "tensor {tensor:?}: offset {offset} is not a multiple of {alignment}: the file is damaged"
    )]
    UnalignedTensor { tensor: String, offset: u64, alignment: u32 },
    /// A tensor reaches past the end of the file.
    #[error(
        "tensor {tensor:?} ({nbytes} bytes at offset {offset}) reaches past the file's {len} bytes: \
         it is damaged or truncated, download it again"
    )]
    TensorPastEnd { tensor: String, offset: u64, nbytes: u64, len: u64 },
    /// Two tensors share bytes.
    #[error("tensors {first:?} and {second:?} overlap: the file is damaged")]
    OverlappingTensors { first: String, second: String },

    // Models split over several files
    /// A part number that is not below the part count.
    #[error("the file says it is part {number} (from 0) of {count}: it is damaged")]
    PartNumber { number: u16, count: u16 },
    /// A file name from which the names of the other parts cannot be derived.
    #[error(
        "{name:?} is {part}, so its name should end in {wanted:?}: rename it to its original name"
    )]
    PartName { name: String, part: Part, wanted: String },
    /// Not the first part.
    #[error("{}: open the first part of the model", not_first(part.as_ref()))]
    NotFirstPart { part: Option<Part> },
    /// Parts are missing, or there are too many.
    #[error("the model has {count} parts, but {given} were given")]
    PartCount { count: u16, given: usize },
    /// A file that is not the part its name says.
    #[error("{file:?} should be {wanted}, but {}: download it again", claims(found.as_ref()))]
    WrongPart { file: String, wanted: Part, found: Option<Part> },
    /// A part of another model.
    #[error(
        "{file:?} is a part of another model: its {key:?} differs from the first part's; download it again"
    )]
    ForeignPart { file: String, key: String },
    /// The parts have more or fewer tensors than the first one says.
    #[error(
        "the model should have {expected} tensors, but its parts hold {found}: they belong to different models, download them again"
    )]
    PartTensors { expected: u64, found: u64 },

    // Access to an open file
    /// A tensor of another model.
    #[error("tensor {tensor:?} does not belong to this model")]
    ForeignTensor { tensor: String },
    /// A missing key.
    #[error("the file has no {key:?}: it is not the expected kind of model")]
    MissingKey { key: String },
    /// A value of another type.
    #[error("{key:?} should be {expected} but is {found}: convert the file again")]
    WrongType { key: String, expected: &'static str, found: Kind },
    /// A number too large or too small.
    #[error("{key:?} is {value}, which does not fit in {expected}: the file is damaged")]
    OutOfRange { key: String, value: i128, expected: &'static str },
    /// A range that is reversed or reaches past the tensor.
    #[error("tensor {tensor:?}: {what} {start}..{end} are not inside its {len}")]
    OutsideTensor { tensor: String, what: &'static str, start: u64, end: u64, len: u64 },
    /// More bytes than this machine can address or has.
    #[error("tensor {tensor:?}: {bytes} bytes at once do not fit in memory: read fewer rows")]
    TooLargeForMemory { tensor: String, bytes: u64 },
    /// A value that is not finite.
    #[error(
        "tensor {tensor:?}: row {row} holds NaN or infinity (column {column}): the file is damaged"
    )]
    NotFinite { tensor: String, row: u64, column: u64 },

    // Block formats
    /// The number of bytes does not match the number of elements.
    #[error("{bytes} bytes of {dtype} are not {elements} elements")]
    BlockLength { dtype: DType, bytes: usize, elements: usize },
    /// A format without a decoder.
    #[error("decoding {dtype} is not supported: choose a file in another format")]
    NoDecoder { dtype: DType },
    /// A format without an encoder.
    #[error("encoding {dtype} is not supported: choose another format")]
    NoEncoder { dtype: DType },

    // Writing
    /// A tensor was given the wrong number of bytes.
    #[error("tensor {tensor:?} takes {expected} bytes but was given {found}")]
    TensorLength { tensor: String, expected: u64, found: u64 },
    /// The file could not be written.
    #[error("cannot write the file: {0}")]
    Write(#[from] std::io::Error),
}

fn not_first(part: Option<&Part>) -> String {
    part.map_or_else(
        || "this file is not part of a split model".into(),
        |part| format!("this is {part}"),
    )
}

fn claims(part: Option<&Part>) -> String {
    part.map_or_else(
        || "it is not part of a split model".into(),
        |part| format!("it says it is {part}"),
    )
}

/// Distinguishes a missing key from a wrong value.
pub trait Optional<T> {
    /// `None` if the key is missing; other errors stay errors.
    fn optional(self) -> Result<Option<T>, GgufError>;
}

impl<T> Optional<T> for Result<T, GgufError> {
    fn optional(self) -> Result<Option<T>, GgufError> {
        match self {
            Ok(value) => Ok(Some(value)),
            Err(GgufError::MissingKey { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }
}
