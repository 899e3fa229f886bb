//! From a file to weights on a device, piece by piece: host memory stays small however large a tensor is.

use std::ops::ControlFlow;

use rullama_engine::{
    executor::{Device, Weights},
    gpu::Fence,
    graph::{Element, Graph, Origin, Type},
};
use rullama_gguf::{DType, Gguf, TensorInfo};
use sha2::{Digest, Sha256};

use crate::error::RuntimeError;

/// Pieces start at multiples of this many rows.
const ROW_STEP: u64 = 4;
/// Bytes queued for the device between two marks. We wait for the mark before the last one: host memory stays small, and the device
/// has work while we wait.
const QUEUED: u64 = 32 << 20;
/// How much of each tensor goes into the fingerprint.
const FINGERPRINT_BYTES: usize = 4096;

/// How far loading is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes read.
    pub done: u64,
    /// Bytes to read.
    pub total: u64,
}

/// Who is told how far loading is, and may end it.
pub(crate) type OnProgress<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;

/// A tensor and where its rows begin in its weight.
struct Rows<'a> {
    name: &'a str,
    first: usize,
    ty: &'a Type,
}

/// Brings tensors of a file to devices.
pub(crate) struct Loader<'a> {
    gguf: &'a Gguf,
    /// What the names of weights have in front of the file's.
    prefix: &'a str,
    progress: OnProgress<'a>,
    done: u64,
    total: u64,
    hash: Sha256,
    queued: u64,
    /// Behind all but the last bytes that were queued.
    mark: Option<Fence>,
}

impl<'a> Loader<'a> {
    /// For these weights, which are read in the order they are asked for.
    pub(crate) fn new(
        gguf: &'a Gguf,
        wants: &[(&Origin, &Type)],
        progress: OnProgress<'a>,
    ) -> Self {
        let tensors = wants.iter().flat_map(|(origin, ty)| origin.tensors(ty));
        let bytes = |name: &str| gguf.tensor(name).map_or(0, TensorInfo::nbytes);
        let total = tensors.map(|(name, ..)| bytes(name)).sum();
        let hash = Sha256::new();
        Self { gguf, prefix: "", progress, done: 0, total, hash, queued: 0, mark: None }
    }

    /// For weights whose names have this in front of the file's.
    pub(crate) fn prefixed(self, prefix: &'a str) -> Self {
        Self { prefix, ..self }
    }

    /// Tells what was loaded from other weights.
    pub(crate) fn fingerprint(self) -> [u8; 32] {
        self.hash.finalize().into()
    }

    /// Brings one weight to where there is room for it; `counts` makes it part of the fingerprint.
    pub(crate) async fn weight(
        &mut self,
        weights: &mut Weights,
        origin: &Origin,
        ty: &Type,
        counts: bool,
    ) -> Result<(), RuntimeError> {
        for (name, first, ty) in origin.tensors(ty) {
            self.tensor(weights, origin, Rows { name, first, ty: &ty }, counts).await?;
        }
        Ok(())
    }

    async fn tensor(
        &mut self,
        weights: &mut Weights,
        origin: &Origin,
        Rows { name, first: offset, ty }: Rows<'_>,
        counts: bool,
    ) -> Result<(), RuntimeError> {
        let own = name.strip_prefix(self.prefix).unwrap_or(name);
        let tensor = self.gguf.tensor(own).expect("the catalogue was made from this file");
        if counts {
            self.hash.update(name);
        }
        if ty.element == Element::Weight(DType::F32) && tensor.dtype() != DType::F32 {
            let numbers = self.gguf.rows_f32(tensor, 0..tensor.rows()).await?;
            let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
            weights.write(origin, name, offset, bytes.into())?;
            return self.report(tensor.nbytes());
        }
        let rows = (weights.piece_bytes() / tensor.row_bytes().max(1)).max(1);
        let rows = rows.next_multiple_of(ROW_STEP).min(tensor.rows());
        let mut first = 0;
        while first < tensor.rows() {
            let end = (first + rows).min(tensor.rows());
            let bytes = self.gguf.read_rows(tensor, first..end).await?;
            if first == 0 && counts {
                self.hash.update(&bytes[..bytes.len().min(FINGERPRINT_BYTES)]);
            }
            let length = bytes.len() as u64;
            // Fits: the tensor's rows were checked against its shape.
            let row = offset + usize::try_from(first).unwrap_or(0);
            weights.write(origin, name, row, bytes)?;
            self.queued += length;
            if self.queued >= QUEUED {
                let before = std::mem::replace(&mut self.mark, weights.fence()?);
                if let Some(mark) = before {
                    mark.wait().await?;
                }
                self.queued = 0;
            }
            self.report(length)?;
            first = end;
        }
        Ok(())
    }

    fn report(&mut self, bytes: u64) -> Result<(), RuntimeError> {
        self.done += bytes;
        match (self.progress)(Progress { done: self.done, total: self.total }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(RuntimeError::Cancelled),
        }
    }
}

/// All weights that some lists use, on a device: room first, so that what does not fit is refused before gigabytes are read; then
/// in the file's order, so that a slow source is read from front to back.
pub(crate) async fn all_weights(
    gguf: &Gguf,
    device: &Device,
    lists: &[Graph],
    progress: OnProgress<'_>,
) -> Result<Weights, RuntimeError> {
    let mut wants: Vec<(&Origin, &Type)> = Vec::new();
    for (_, info) in lists.iter().flat_map(Graph::values) {
        let known = wants.iter().any(|(origin, _)| **origin == info.origin);
        if info.origin.weight_name().is_some() && !known {
            wants.push((&info.origin, &info.ty));
        }
    }
    wants.sort_by_key(|(origin, ty)| place(gguf, origin, ty));
    let mut weights = Weights::new(device);
    for (origin, ty) in &wants {
        weights.reserve(origin, ty).await?;
    }
    let mut loader = Loader::new(gguf, &wants, progress);
    for (origin, ty) in wants {
        loader.weight(&mut weights, origin, ty, false).await?;
    }
    weights.settle().await?;
    Ok(weights)
}

/// Where a weight begins: its part of the model, and the place in that file.
pub(crate) fn place(gguf: &Gguf, origin: &Origin, ty: &Type) -> (usize, u64) {
    let tensors = origin.tensors(ty);
    let places = tensors.iter().filter_map(|(name, ..)| gguf.tensor(name));
    places.map(|tensor| (tensor.part(), tensor.offset())).min().unwrap_or_default()
}
