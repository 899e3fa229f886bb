//! From a file to weights on a device, piece by piece: host memory stays small however large a tensor is.

use std::{
    collections::VecDeque,
    ops::{ControlFlow, Range},
};

use rullama_engine::{
    executor::{Device, Weights},
    gpu::{Fence, ROW_STEP},
    graph::{Element, Graph, Origin, Type},
};
use rullama_gguf::{DType, Gguf, GgufError, TensorInfo};
use rullama_source::{Bytes, Local};
use sha2::{Digest, Sha256};

use crate::error::RuntimeError;

/// Bytes queued for the device between two marks. We wait for the mark before the last one: host memory stays small, and the device
/// has work while we wait.
const QUEUED: u64 = 32 << 20;
/// Bytes that are prefetched ahead of what is written: a source that is far away works meanwhile.
const AHEAD: u64 = 48 << 20;
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

/// A weight to be loaded, and what is known of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) origin: &'a Origin,
    pub(crate) ty: &'a Type,
    /// Where it goes: a number among the places that loading is told.
    pub(crate) place: usize,
    /// It is part of the fingerprint.
    pub(crate) counts: bool,
}

/// Rows of a tensor that are read at once.
struct Piece<'a> {
    want: Wanted<'a>,
    tensor: &'a TensorInfo,
    /// The tensor's name among the weights, and its number among those wanted.
    name: &'a str,
    number: usize,
    rows: Range<u64>,
    /// Where they begin in the weight.
    first: usize,
    /// Stored in another format than it is wanted in.
    converted: bool,
}

impl<'a> Piece<'a> {
    /// Bytes in the file.
    fn bytes(&self) -> u64 {
        (self.rows.end - self.rows.start) * self.tensor.row_bytes()
    }

    /// Its rows as they are wanted. The source is asked now, but for what is converted: norms and other small things.
    fn read(&self, gguf: &'a Gguf) -> Local<'a, Result<Bytes, GgufError>> {
        let (tensor, rows) = (self.tensor, self.rows.clone());
        if !self.converted {
            return Box::pin(gguf.read_rows(tensor, rows));
        }
        Box::pin(async move {
            let numbers = gguf.rows_f32(tensor, rows).await?;
            Ok(numbers.iter().flat_map(|x| x.to_le_bytes()).collect())
        })
    }
}

/// Brings tensors of a file to devices.
pub(crate) struct Loader<'a> {
    gguf: &'a Gguf,
    /// What the names of weights have before the file's.
    prefix: &'a str,
    progress: OnProgress<'a>,
    done: u64,
    total: u64,
    /// What the fingerprint is made of, by the tensors' numbers.
    heads: Vec<Vec<u8>>,
    queued: u64,
    /// After all but the last bytes that were queued.
    mark: Option<Fence>,
}

impl<'a> Loader<'a> {
    pub(crate) fn new(gguf: &'a Gguf, progress: OnProgress<'a>) -> Self {
        let (done, total, queued) = (0, 0, 0);
        Self { gguf, prefix: "", progress, done, total, heads: Vec::new(), queued, mark: None }
    }

    /// For weights whose names have this before the file's.
    pub(crate) fn prefixed(self, prefix: &'a str) -> Self {
        Self { prefix, ..self }
    }

    /// Tells what was loaded from other weights.
    pub(crate) fn fingerprint(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        self.heads.iter().for_each(|head| hash.update(head));
        hash.finalize().into()
    }

    /// Brings weights to places that have space for them, in the file's order, so that a slow source is read from front to back.
    pub(crate) async fn load(
        &mut self,
        wants: &[Wanted<'_>],
        places: &mut [&mut Weights],
    ) -> Result<(), RuntimeError> {
        let mut pieces = self.pieces(wants, places).into_iter();
        self.total = pieces.as_slice().iter().map(Piece::bytes).sum();
        let mut reading = VecDeque::new();
        let mut ahead = 0;
        loop {
            while ahead < AHEAD {
                let Some(piece) = pieces.next() else { break };
                ahead += piece.bytes();
                let bytes = piece.read(self.gguf);
                reading.push_back((piece, bytes));
            }
            let Some((piece, bytes)) = reading.pop_front() else { return Ok(()) };
            let bytes = bytes.await?;
            ahead -= piece.bytes();
            let place = &mut *places[piece.want.place];
            self.write(place, &piece, bytes)?;
            self.wait_for_queue(place, piece.bytes()).await?;
            self.report(piece.bytes())?;
        }
    }

    /// What is read for some weights, as it lies in the file.
    fn pieces<'w>(&mut self, wants: &[Wanted<'w>], places: &[&mut Weights]) -> Vec<Piece<'w>>
    where
        'a: 'w,
    {
        let mut pieces = Vec::new();
        for want in wants {
            let most = places[want.place].piece_bytes();
            for (name, offset, ty) in want.origin.tensors(want.ty) {
                let own = name.strip_prefix(self.prefix).unwrap_or(name);
                let tensor = self.gguf.tensor(own).expect("the catalogue was made from this file");
                let number = self.heads.len();
                self.heads.push(if want.counts { name.into() } else { Vec::new() });
                let converted =
                    ty.element == Element::Weight(DType::F32) && tensor.dtype() != DType::F32;
                let step =
                    (most / tensor.row_bytes().max(1)).max(1).next_multiple_of(ROW_STEP as u64);
                let step = if converted { tensor.rows() } else { step.min(tensor.rows()) };
                let mut at = 0;
                while at < tensor.rows() {
                    let rows = at..at.saturating_add(step).min(tensor.rows());
                    // Fits: the tensor's rows were checked against its shape.
                    let first = offset + usize::try_from(at).unwrap_or(0);
                    at = rows.end;
                    pieces.push(Piece {
                        want: *want,
                        tensor,
                        name,
                        number,
                        rows,
                        first,
                        converted,
                    });
                }
            }
        }
        pieces
            .sort_by_key(|Piece { tensor, rows, .. }| (tensor.part(), tensor.offset(), rows.start));
        pieces
    }

    fn write(
        &mut self,
        place: &mut Weights,
        piece: &Piece<'_>,
        bytes: Bytes,
    ) -> Result<(), RuntimeError> {
        let Piece { want, name, number, rows, first, converted, .. } = piece;
        if rows.start == 0 && want.counts && !converted {
            self.heads[*number].extend(&bytes[..bytes.len().min(FINGERPRINT_BYTES)]);
        }
        Ok(place.write(want.origin, name, *first, bytes)?)
    }

    /// Waits now and then, so that what was queued does not pile up.
    async fn wait_for_queue(&mut self, place: &Weights, bytes: u64) -> Result<(), RuntimeError> {
        self.queued += bytes;
        if self.queued < QUEUED {
            return Ok(());
        }
        self.queued = 0;
        if let Some(before) = std::mem::replace(&mut self.mark, place.fence()?) {
            before.wait().await?;
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

/// Refuses a model of which the device's kernels cannot read a tensor, before a kernel is compiled or a byte is loaded. Only the first place is
/// the device; others are the host, which decodes every format.
pub(crate) fn check_formats(device: &Device, wants: &[Wanted<'_>]) -> Result<(), RuntimeError> {
    let mut on_device = wants.iter().filter(|want| want.place == 0);
    Ok(on_device.try_for_each(|want| device.check_format(want.origin, want.ty))?)
}

/// All weights that some graphs use, on a device: space first, so that what does not fit is refused before gigabytes are read.
pub(crate) async fn all_weights(
    gguf: &Gguf,
    device: &Device,
    graphs: &[Graph],
    progress: OnProgress<'_>,
) -> Result<Weights, RuntimeError> {
    let mut wants: Vec<Wanted<'_>> = Vec::new();
    for (_, info) in graphs.iter().flat_map(Graph::values) {
        let known = wants.iter().any(|want| *want.origin == info.origin);
        if info.origin.weight_name().is_some() && !known {
            wants.push(Wanted { origin: &info.origin, ty: &info.ty, place: 0, counts: false });
        }
    }
    check_formats(device, &wants)?;
    let mut weights = Weights::new(device);
    for want in &wants {
        weights.reserve(want.origin, want.ty).await?;
    }
    Loader::new(gguf, progress).load(&wants, &mut [&mut weights]).await?;
    weights.flush().await?;
    Ok(weights)
}
