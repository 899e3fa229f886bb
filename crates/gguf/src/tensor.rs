//! Name, shape, type and position of a tensor.

use std::ops::Range;

use crate::{dtype::DType, error::GgufError, named::Named, quant};

/// Maximum number of dimensions.
pub(crate) const MAX_DIMS: usize = 4;

/// Name, shape, type and position of a tensor, checked against the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    name: String,
    /// Unused dimensions are 1.
    dims: [u64; MAX_DIMS],
    dims_used: usize,
    dtype: DType,
    nbytes: u64,
    part: usize,
    offset: u64,
}

impl TensorInfo {
    /// Checks the shape. The position is checked by [`layout::resolve_offsets`](crate::layout::resolve_offsets).
    pub(crate) fn new(
        name: String,
        dims: &[u64],
        dtype: DType,
        offset: u64,
    ) -> Result<Self, GgufError> {
        let count = dims.len();
        if count == 0 {
            return Err(GgufError::NoDimensions { tensor: name });
        }
        let mut padded = [1; MAX_DIMS];
        let Some(used) = padded.get_mut(..count) else {
            return Err(GgufError::TooManyDimensions { tensor: name, count: count as u64 });
        };
        used.copy_from_slice(dims);
        if let Some(axis) = dims.iter().position(|&d| d == 0) {
            return Err(GgufError::ZeroDimension { tensor: name, axis });
        }
        let product = dims.iter().try_fold(1u64, |product, &d| product.checked_mul(d));
        let Some(elements) = product else {
            return Err(GgufError::ElementsOverflow { tensor: name, dims: dims.to_vec() });
        };
        let block = dtype.block_elements() as u64;
        if !dims[0].is_multiple_of(block) {
            return Err(GgufError::RaggedRow { tensor: name, row_len: dims[0], dtype });
        }
        let Some(nbytes) = (elements / block).checked_mul(dtype.block_bytes() as u64) else {
            return Err(GgufError::BytesOverflow { tensor: name, elements, dtype });
        };
        Ok(Self { name, dims: padded, dims_used: count, dtype, nbytes, part: 0, offset })
    }

    pub(crate) fn move_to(&mut self, offset: u64) {
        self.offset = offset;
    }

    /// The same tensor in a part of a split model.
    pub(crate) fn of_part(self, part: usize) -> Self {
        Self { part, ..self }
    }

    /// The name in the file: "blk.0.attn_q.weight".
    pub fn name(&self) -> &str {
        &self.name
    }

    /// One to four sizes, the fastest varying first.
    pub fn dims(&self) -> &[u64] {
        &self.dims[..self.dims_used]
    }

    /// The element format.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Index of its file in a split model, from 0.
    pub fn part(&self) -> usize {
        self.part
    }

    /// Offset from the start of its file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes of the whole tensor.
    pub fn nbytes(&self) -> u64 {
        self.nbytes
    }

    /// Elements of the whole tensor.
    pub fn elements(&self) -> u64 {
        self.dims.iter().product()
    }

    /// Elements of a row.
    pub fn row_len(&self) -> u64 {
        self.dims[0]
    }

    /// Bytes of a row.
    pub fn row_bytes(&self) -> u64 {
        self.row_len() / self.dtype.block_elements() as u64 * self.dtype.block_bytes() as u64
    }

    /// Number of rows, over all outer dimensions.
    pub fn rows(&self) -> u64 {
        self.dims[1..].iter().product()
    }

    /// Refuses NaN and infinity in `bytes`, whole rows of this tensor from `first_row` on.
    ///
    /// Blocks are decoded only if their scales may overflow, which is much faster than decoding all.
    pub fn check_finite(&self, first_row: u64, bytes: &[u8]) -> Result<(), GgufError> {
        let Some(element) = quant::first_not_finite(self.dtype, bytes)? else { return Ok(()) };
        let row = first_row.saturating_add(element as u64 / self.row_len());
        let column = element as u64 % self.row_len();
        Err(GgufError::NotFinite { tensor: self.name.clone(), row, column })
    }

    /// The bytes of `rows`.
    pub(crate) fn row_range(&self, rows: &Range<u64>) -> Result<Range<u64>, GgufError> {
        self.check_range("rows", rows, self.rows())?;
        // No overflow: both are at most `nbytes`.
        Ok(rows.start * self.row_bytes()..rows.end * self.row_bytes())
    }

    /// Number of elements of some rows, if they can be decoded and fit in memory.
    pub(crate) fn decodable(&self, rows: u64) -> Result<usize, GgufError> {
        if !self.dtype.decodable() {
            return Err(GgufError::NoDecoder { dtype: self.dtype });
        }
        // No overflow: at most the tensor's elements.
        let elements = rows * self.row_len();
        self.addressable(elements.saturating_mul(size_of::<f32>() as u64))?;
        self.addressable(elements)
    }

    /// Decodes the bytes of whole rows.
    pub(crate) fn decode(&self, elements: usize, bytes: &[u8]) -> Result<Vec<f32>, GgufError> {
        let mut values = Vec::new();
        let floats = (elements as u64).saturating_mul(size_of::<f32>() as u64);
        values.try_reserve_exact(elements).map_err(|_| self.too_large(floats))?;
        values.resize(elements, 0.0);
        quant::dequantize(self.dtype, bytes, &mut values)?;
        Ok(values)
    }

    pub(crate) fn check_range(
        &self,
        what: &'static str,
        range: &Range<u64>,
        len: u64,
    ) -> Result<(), GgufError> {
        if range.start <= range.end && range.end <= len {
            return Ok(());
        }
        let (tensor, start, end) = (self.name.clone(), range.start, range.end);
        Err(GgufError::OutsideTensor { tensor, what, start, end, len })
    }

    /// `bytes` as `usize`, if an allocation can have this size.
    pub(crate) fn addressable(&self, bytes: u64) -> Result<usize, GgufError> {
        let fits = isize::try_from(bytes).ok().and_then(|bytes| usize::try_from(bytes).ok());
        fits.ok_or_else(|| self.too_large(bytes))
    }

    pub(crate) fn foreign(&self) -> GgufError {
        GgufError::ForeignTensor { tensor: self.name.clone() }
    }

    pub(crate) fn too_large(&self, bytes: u64) -> GgufError {
        GgufError::TooLargeForMemory { tensor: self.name.clone(), bytes }
    }
}

impl Named for TensorInfo {
    fn name(&self) -> &str {
        &self.name
    }
}
