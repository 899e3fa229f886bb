//! Weights on the device: blocks are split into fields, and equal fields of all blocks are contiguous.
//!
//! A file's blocks of 18, 34 or 210 bytes start at any byte; shaders read words. Splitting `d | quants` into a plane of quants and a plane
//! of scales aligns every field without padding the blocks, and makes the wide loads of neighbouring lanes adjacent. A weight larger
//! than a binding becomes several slabs of rows, each with its own planes.

use std::ops::Range;

use rullama_gguf::{
    DType,
    quant::code_book::{self, CodeBook},
};

use super::DeviceFacts;
use crate::graph::Shape;

/// Alignment of planes in bytes, so that fields of 16 bytes can be loaded at once.
const ALIGN: usize = 16;
/// Weights that kernels read at a time; rows of plain floats are padded to a multiple of it with zeros.
pub(crate) const UNIT: usize = 32;
/// Pieces and slabs start at multiples of this many rows, so that planes with single-byte fields are written at whole words.
pub const ROW_STEP: usize = 4;

/// The fields of a format's block in plane order: offset in the block, bytes.
pub(crate) fn fields(dtype: DType) -> &'static [(usize, usize)] {
    match dtype {
        DType::F32 => &[(0, 4)],
        DType::F16 | DType::BF16 => &[(0, 2)],
        DType::Q4_0 | DType::IQ4_NL => &[(2, 16), (0, 2)],
        DType::Q4_1 => &[(4, 16), (0, 4)],
        DType::Q5_0 => &[(6, 16), (2, 4), (0, 2)],
        DType::Q5_1 => &[(8, 16), (4, 4), (0, 4)],
        DType::Q8_0 => &[(2, 32), (0, 2)],
        DType::Q2_K => &[(16, 64), (0, 16), (80, 4)],
        DType::Q3_K => &[(32, 64), (0, 32), (96, 12), (108, 2)],
        DType::Q4_K => &[(16, 128), (0, 16)],
        DType::Q5_K => &[(48, 128), (16, 32), (0, 16)],
        DType::Q6_K => &[(0, 128), (128, 64), (192, 16), (208, 2)],
        DType::IQ4_XS => &[(8, 128), (0, 8)],
        DType::MXFP4 => &[(1, 16), (0, 1)],
        DType::NVFP4 => &[(4, 32), (0, 4)],
        DType::IQ1_S => &[(2, 48), (0, 2)],
        DType::IQ1_M => &[(0, 56)],
        DType::IQ2_XXS => &[(2, 64), (0, 2)],
        DType::IQ2_XS => &[(2, 64), (66, 8), (0, 2)],
        DType::IQ2_S => &[(2, 64), (66, 16), (0, 2)],
        DType::IQ3_XXS => &[(2, 96), (0, 2)],
        DType::IQ3_S => &[(2, 64), (66, 44), (0, 2)],
        DType::TQ1_0 => &[(0, 52), (52, 2)],
        DType::TQ2_0 => &[(0, 64), (64, 2)],
        _ => &[],
    }
}

/// The code book that a format's blocks refer to. Each slab has a copy of it as its last plane, two bytes an entry, so that kernels need
/// no other binding and no table in their text.
fn code_book(dtype: DType) -> Option<&'static CodeBook> {
    match dtype {
        DType::IQ1_S | DType::IQ1_M => Some(&code_book::IQ1),
        DType::IQ2_XXS => Some(&code_book::IQ2_XXS),
        DType::IQ2_XS => Some(&code_book::IQ2_XS),
        DType::IQ2_S => Some(&code_book::IQ2_S),
        DType::IQ3_XXS => Some(&code_book::IQ3_XXS),
        DType::IQ3_S => Some(&code_book::IQ3_S),
        _ => None,
    }
}

/// Bytes of a format's code book in a slab.
fn book_bytes(dtype: DType) -> usize {
    code_book(dtype).map_or(0, |book| (2 * book.entries()).next_multiple_of(ALIGN))
}

/// The slabs of a weight on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slabs {
    /// Block format.
    pub dtype: DType,
    /// Blocks per row in the file.
    pub file_blocks: usize,
    /// Blocks per row on the device: more for plain floats if their rows are not multiples of a unit.
    pub row_blocks: usize,
    /// The rows of each slab.
    pub rows: Vec<Range<usize>>,
}

impl Slabs {
    /// Splits a weight so that every slab fits a binding.
    ///
    /// # Panics
    /// If kernels do not read the format; loading checks that.
    pub fn new(dtype: DType, shape: &Shape, facts: &DeviceFacts) -> Self {
        assert!(!fields(dtype).is_empty(), "{} has no layout on the device", dtype.name());
        let file_blocks = shape.width() / dtype.block_elements();
        let row_blocks = file_blocks.next_multiple_of(UNIT.div_ceil(dtype.block_elements()));
        let row_bytes = row_blocks * dtype.block_bytes();
        let extra = ALIGN * fields(dtype).len() + book_bytes(dtype);
        let capacity =
            usize::try_from(facts.binding_bytes).unwrap_or(usize::MAX).saturating_sub(extra);
        let most = (capacity / row_bytes.max(1) / ROW_STEP * ROW_STEP).max(ROW_STEP);
        let all = shape.rows();
        let rows = (0..all.div_ceil(most)).map(|i| i * most..((i + 1) * most).min(all)).collect();
        Self { dtype, file_blocks, row_blocks, rows }
    }

    /// Units per row on the device.
    pub fn row_units(&self) -> usize {
        self.row_blocks * self.dtype.block_elements() / UNIT
    }

    /// Word offsets of the planes of slab `slab`; unused entries are zero.
    pub fn planes(&self, slab: usize) -> [u32; 4] {
        let mut offsets = [0; 4];
        let planes = fields(self.dtype).len() + usize::from(code_book(self.dtype).is_some());
        for (i, start) in self.plane_bytes(slab).into_iter().enumerate().take(planes) {
            offsets[i] = u32::try_from(start / 4).expect("a binding has fewer than 2^32 words");
        }
        offsets
    }

    /// Bytes of slab `slab`.
    pub fn bytes(&self, slab: usize) -> usize {
        self.plane_bytes(slab).last().copied().unwrap_or(0)
    }

    /// Byte offset of each plane, and the end of the last one.
    fn plane_bytes(&self, slab: usize) -> Vec<usize> {
        let blocks = self.rows[slab].len() * self.row_blocks;
        let mut at = 0;
        let mut starts = vec![0];
        for (_, width) in fields(self.dtype) {
            at += (blocks * width).next_multiple_of(ALIGN);
            starts.push(at);
        }
        if code_book(self.dtype).is_some() {
            starts.push(at + book_bytes(self.dtype));
        }
        starts
    }

    /// Splits whole rows of a file into planes: for each field, the byte offset in slab `slab` and the bytes to write there. The code book comes
    /// with the first row.
    ///
    /// `first` is the first row, counted from the start of the slab; `bytes` holds whole rows of `file_blocks` blocks.
    pub fn split(&self, slab: usize, first: usize, bytes: &[u8]) -> Vec<(usize, Vec<u8>)> {
        let block_bytes = self.dtype.block_bytes();
        let starts = self.plane_bytes(slab);
        let book = code_book(self.dtype).filter(|_| first == 0).map(|book| {
            let bytes = book.packed().into_iter().flat_map(u16::to_le_bytes).collect();
            (starts[fields(self.dtype).len()], bytes)
        });
        let planes = fields(self.dtype).iter().zip(&starts);
        planes
            .map(|((offset, width), start)| {
                let mut plane = Vec::with_capacity(bytes.len() / block_bytes * width);
                for row in bytes.chunks_exact(self.file_blocks * block_bytes) {
                    gather(&mut plane, row, block_bytes, (*offset, *width));
                    plane.resize(plane.len() + (self.row_blocks - self.file_blocks) * width, 0);
                }
                (start + first * self.row_blocks * width, plane)
            })
            .chain(book)
            .collect()
    }
}

/// Appends one field of every block of a row. Copies of a length known at compile time become loads and stores; others are calls, which
/// are slow as wasm.
fn gather(plane: &mut Vec<u8>, row: &[u8], block: usize, (offset, width): (usize, usize)) {
    match width {
        // The block has a single field.
        _ if width == block => plane.extend_from_slice(row),
        1 => gather_known::<1>(plane, row, block, offset),
        2 => gather_known::<2>(plane, row, block, offset),
        4 => gather_known::<4>(plane, row, block, offset),
        8 => gather_known::<8>(plane, row, block, offset),
        12 => gather_known::<12>(plane, row, block, offset),
        16 => gather_known::<16>(plane, row, block, offset),
        32 => gather_known::<32>(plane, row, block, offset),
        64 => gather_known::<64>(plane, row, block, offset),
        _ => {
            row.chunks_exact(block)
                .for_each(|block| plane.extend_from_slice(&block[offset..offset + width]));
        }
    }
}

fn gather_known<const WIDTH: usize>(plane: &mut Vec<u8>, row: &[u8], block: usize, offset: usize) {
    let start = plane.len();
    plane.resize(start + row.len() / block * WIDTH, 0);
    let (to, _) = plane[start..].as_chunks_mut::<WIDTH>();
    for (to, block) in to.iter_mut().zip(row.chunks_exact(block)) {
        if let Some((field, _)) = block[offset..].split_first_chunk::<WIDTH>() {
            *to = *field;
        }
    }
}

#[cfg(test)]
mod tests {
    use rullama_gguf::DType;

    use super::{DeviceFacts, ROW_STEP, Slabs, UNIT, book_bytes, code_book, fields};

    const FORMATS: [DType; 26] = [
        DType::F32,
        DType::F16,
        DType::BF16,
        DType::Q4_0,
        DType::Q4_1,
        DType::Q5_0,
        DType::Q5_1,
        DType::Q8_0,
        DType::Q2_K,
        DType::Q3_K,
        DType::Q4_K,
        DType::Q5_K,
        DType::Q6_K,
        DType::IQ4_NL,
        DType::IQ4_XS,
        DType::MXFP4,
        DType::NVFP4,
        DType::IQ1_S,
        DType::IQ1_M,
        DType::IQ2_XXS,
        DType::IQ2_XS,
        DType::IQ2_S,
        DType::IQ3_XXS,
        DType::IQ3_S,
        DType::TQ1_0,
        DType::TQ2_0,
    ];

    #[test]
    fn fields_hold_every_byte_of_a_block_once() {
        for dtype in FORMATS {
            let mut times = vec![0; dtype.block_bytes()];
            for (start, width) in fields(dtype) {
                times[*start..start + width].iter_mut().for_each(|n| *n += 1);
            }
            assert!(times.iter().all(|n| *n == 1), "{}: {times:?}", dtype.name());
            let planes = fields(dtype).len() + usize::from(code_book(dtype).is_some());
            assert!(planes <= 4, "{}: parameters name four planes", dtype.name());
        }
    }

    /// Rows written in pieces are at the expected offsets of each plane.
    #[test]
    fn pieces_and_slabs_put_each_field_at_its_offset() {
        for dtype in FORMATS {
            let width = if dtype.block_elements() == 1 { 33 } else { dtype.block_elements() * 3 };
            let row_bytes = width / dtype.block_elements() * dtype.block_bytes();
            let binding_bytes = (9 * row_bytes + book_bytes(dtype)) as u64;
            let facts = DeviceFacts { binding_bytes, ..DeviceFacts::floor() };
            let (slabs, memory, file) = written(dtype, [11, width], &facts);
            assert!(slabs.rows.len() > 1, "{}: {:?}", dtype.name(), slabs.rows);
            for (slab, rows) in slabs.rows.iter().enumerate() {
                assert!(slabs.bytes(slab) as u64 <= facts.binding_bytes, "{}", dtype.name());
                for (plane, (offset, bytes)) in fields(dtype).iter().enumerate() {
                    let start = slabs.planes(slab)[plane] as usize * 4;
                    assert!(start.is_multiple_of(16));
                    for (row, block) in
                        (0..rows.len()).flat_map(|r| (0..slabs.file_blocks).map(move |b| (r, b)))
                    {
                        let at = start + (row * slabs.row_blocks + block) * bytes;
                        let from =
                            (rows.start + row) * row_bytes + block * dtype.block_bytes() + offset;
                        assert_eq!(
                            memory[slab][at..at + bytes],
                            file[from..from + bytes],
                            "{} row {row} block {block} plane {plane}",
                            dtype.name()
                        );
                    }
                }
            }
            for (slab, memory) in memory.iter().enumerate().filter(|_| code_book(dtype).is_some()) {
                let start = slabs.planes(slab)[fields(dtype).len()] as usize * 4;
                let packed = code_book(dtype).map(|book| book.packed()).unwrap_or_default();
                let bytes: Vec<u8> = packed.into_iter().flat_map(u16::to_le_bytes).collect();
                assert_eq!(memory[start..start + bytes.len()], bytes, "{}", dtype.name());
            }
            assert!((slabs.row_units() * UNIT).is_multiple_of(dtype.block_elements()));
        }
    }

    /// A file of counted bytes, split in pieces of four rows into the memory of its slabs.
    fn written(
        dtype: DType,
        shape: [usize; 2],
        facts: &DeviceFacts,
    ) -> (Slabs, Vec<Vec<u8>>, Vec<u8>) {
        let slabs = Slabs::new(dtype, &shape.into(), facts);
        let row_bytes = slabs.file_blocks * dtype.block_bytes();
        let file: Vec<u8> = (0..shape[0] * row_bytes).map(|i| (i * 37 % 251) as u8).collect();
        let mut memory: Vec<Vec<u8>> =
            (0..slabs.rows.len()).map(|slab| vec![0xff; slabs.bytes(slab)]).collect();
        for (slab, rows) in slabs.rows.iter().enumerate() {
            for first in (0..rows.len()).step_by(ROW_STEP) {
                let end = (first + ROW_STEP).min(rows.len());
                let piece = &file[(rows.start + first) * row_bytes..(rows.start + end) * row_bytes];
                for (at, plane) in slabs.split(slab, first, piece) {
                    assert!(at.is_multiple_of(4), "{}: copies start at whole words", dtype.name());
                    memory[slab][at..at + plane.len()].copy_from_slice(&plane);
                }
            }
        }
        (slabs, memory, file)
    }
}
