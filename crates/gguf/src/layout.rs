//! Positions of tensors: aligned, inside the file, not overlapping.

use crate::{
    error::GgufError, metadata::Entry, named::NamedList, tensor::TensorInfo, value::Value,
};

/// The key of the alignment.
pub(crate) const ALIGNMENT_KEY: &str = "general.alignment";
/// The alignment of files that have no such key.
const DEFAULT_ALIGNMENT: u32 = 32;
/// The size of huge pages; no device needs more.
const MAX_ALIGNMENT: u32 = 2 << 20;

/// The alignment of the tensors' data.
pub(crate) fn alignment(metadata: &NamedList<Entry>) -> Result<u32, GgufError> {
    match metadata.get(ALIGNMENT_KEY).map(|entry| &entry.value) {
        None => Ok(DEFAULT_ALIGNMENT),
        Some(&Value::U32(alignment)) => check_alignment(alignment),
        Some(other) => Err(GgufError::AlignmentType { found: other.kind() }),
    }
}

fn check_alignment(alignment: u32) -> Result<u32, GgufError> {
    if alignment == 0 {
        return Err(GgufError::AlignmentZero);
    }
    if !alignment.is_power_of_two() {
        return Err(GgufError::AlignmentNotPowerOfTwo { alignment });
    }
    if alignment > MAX_ALIGNMENT {
        return Err(GgufError::AlignmentTooLarge { alignment, limit: MAX_ALIGNMENT });
    }
    Ok(alignment)
}

/// Converts offsets from the start of the data to offsets in a file of `len` bytes.
pub(crate) fn resolve_offsets(
    tensors: &mut [TensorInfo],
    header_end: u64,
    alignment: u32,
    len: u64,
) -> Result<(), GgufError> {
    // No overflow: headers are short.
    let data_start = header_end.next_multiple_of(alignment.into());
    for tensor in &mut *tensors {
        let (offset, nbytes) = (tensor.offset(), tensor.nbytes());
        if !offset.is_multiple_of(alignment.into()) {
            let tensor = tensor.name().to_owned();
            return Err(GgufError::UnalignedTensor { tensor, offset, alignment });
        }
        let start = data_start.checked_add(offset);
        let end = start.and_then(|start| start.checked_add(nbytes));
        match (start, end) {
            (Some(start), Some(end)) if end <= len => tensor.move_to(start),
            _ => {
                let tensor = tensor.name().to_owned();
                return Err(GgufError::TensorPastEnd { tensor, offset, nbytes, len });
            }
        }
    }
    check_overlaps(tensors)
}

fn check_overlaps(tensors: &[TensorInfo]) -> Result<(), GgufError> {
    let mut in_order: Vec<&TensorInfo> = tensors.iter().collect();
    in_order.sort_unstable_by_key(|tensor| tensor.offset());
    for pair in in_order.windows(2) {
        // No overflow: the end is inside the file.
        if pair[0].offset() + pair[0].nbytes() > pair[1].offset() {
            let [first, second] = [pair[0], pair[1]].map(|tensor| tensor.name().to_owned());
            return Err(GgufError::OverlappingTensors { first, second });
        }
    }
    Ok(())
}
