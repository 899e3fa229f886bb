//! Loads weights from a file onto devices in pieces, so that host memory stays small.

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

/// Bytes queued for the device between two fences. The loader waits for the fence before the last one: host memory stays small, and the
/// device stays busy.
const QUEUED: u64 = 32 << 20;
/// Bytes that are prefetched while earlier ones are written, to hide the latency of remote sources.
const PREFETCH: u64 = 48 << 20;
/// Bytes of each tensor that are part of the fingerprint.
const FINGERPRINT_BYTES: usize = 4096;

/// Progress of loading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes read.
    pub done: u64,
    /// Bytes to read.
    pub total: u64,
}

/// Callback for loading progress, which may cancel loading.
pub(crate) type OnProgress<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;

/// A weight to load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) origin: &'a Origin,
    pub(crate) ty: &'a Type,
    /// Index of its destination among those passed to [`Loader::load`].
    pub(crate) place: usize,
    /// Whether it is part of the fingerprint.
    pub(crate) counts: bool,
}

/// Rows of a tensor that are read in one request.
struct Piece<'a> {
    want: Wanted<'a>,
    tensor: &'a TensorInfo,
    /// The tensor's name among the weights, and its index in [`Loader::heads`].
    name: &'a str,
    number: usize,
    rows: Range<u64>,
    /// First row in the weight.
    first: usize,
    /// Whether rows are converted to F32.
    converted: bool,
}

impl<'a> Piece<'a> {
    /// Bytes in the file.
    fn bytes(&self) -> u64 {
        (self.rows.end - self.rows.start) * self.tensor.row_bytes()
    }

    /// Reads the rows in the weight's format. The request starts immediately, except for converted rows, which are small (norms, scales).
    fn read(&self, gguf: &'a Gguf) -> Local<'a, Result<Bytes, GgufError>> {
        let (tensor, rows) = (self.tensor, self.rows.clone());
        if !self.converted {
            return Box::pin(gguf.read_rows(tensor, rows));
        }
        Box::pin(async move {
            let values = gguf.rows_f32(tensor, rows).await?;
            Ok(values.iter().flat_map(|x| x.to_le_bytes()).collect())
        })
    }
}

/// Loads tensors of a file onto devices.
pub(crate) struct Loader<'a> {
    gguf: &'a Gguf,
    /// Prefix of weight names, which the file's tensor names lack.
    prefix: &'a str,
    progress: OnProgress<'a>,
    done: u64,
    total: u64,
    /// Name and first bytes of each tensor, hashed by the fingerprint.
    heads: Vec<Vec<u8>>,
    queued: u64,
    /// Fence before the bytes counted in `queued`.
    fence: Option<Fence>,
}

impl<'a> Loader<'a> {
    pub(crate) fn new(gguf: &'a Gguf, progress: OnProgress<'a>) -> Self {
        let (done, total, queued) = (0, 0, 0);
        Self { gguf, prefix: "", progress, done, total, heads: Vec::new(), queued, fence: None }
    }

    /// Sets the prefix of weight names.
    pub(crate) fn prefixed(self, prefix: &'a str) -> Self {
        Self { prefix, ..self }
    }

    /// Hash that identifies the loaded weights.
    pub(crate) fn fingerprint(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        self.heads.iter().for_each(|head| hash.update(head));
        hash.finalize().into()
    }

    /// Loads weights into their reserved space, in file order, so that a slow source is read sequentially.
    pub(crate) async fn load(
        &mut self,
        wants: &[Wanted<'_>],
        destinations: &mut [&mut Weights],
    ) -> Result<(), RuntimeError> {
        let mut pieces = self.pieces(wants, destinations).into_iter();
        self.total = pieces.as_slice().iter().map(Piece::bytes).sum();
        let mut reading = VecDeque::new();
        let mut prefetched = 0;
        loop {
            while prefetched < PREFETCH {
                let Some(piece) = pieces.next() else { break };
                prefetched += piece.bytes();
                let bytes = piece.read(self.gguf);
                reading.push_back((piece, bytes));
            }
            let Some((piece, bytes)) = reading.pop_front() else { return Ok(()) };
            let bytes = bytes.await?;
            prefetched -= piece.bytes();
            let destination = &mut *destinations[piece.want.place];
            self.write(destination, &piece, bytes)?;
            self.wait_for_queue(destination, piece.bytes()).await?;
            self.report(piece.bytes())?;
        }
    }

    /// The pieces to read for these weights, in file order.
    fn pieces<'w>(&mut self, wants: &[Wanted<'w>], destinations: &[&mut Weights]) -> Vec<Piece<'w>>
    where
        'a: 'w,
    {
        let mut pieces = Vec::new();
        for want in wants {
            let most = destinations[want.place].piece_bytes();
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
        destination: &mut Weights,
        piece: &Piece<'_>,
        bytes: Bytes,
    ) -> Result<(), RuntimeError> {
        let Piece { want, name, number, rows, first, converted, .. } = piece;
        if rows.start == 0 && want.counts && !converted {
            self.heads[*number].extend(&bytes[..bytes.len().min(FINGERPRINT_BYTES)]);
        }
        Ok(destination.write(want.origin, name, *first, bytes)?)
    }

    /// Waits for earlier uploads once enough bytes are queued.
    async fn wait_for_queue(
        &mut self,
        destination: &Weights,
        bytes: u64,
    ) -> Result<(), RuntimeError> {
        self.queued += bytes;
        if self.queued < QUEUED {
            return Ok(());
        }
        self.queued = 0;
        if let Some(before) = std::mem::replace(&mut self.fence, destination.fence()?) {
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

/// Checks that the device's kernels can read every tensor format, before any kernel is compiled or byte loaded. Only destination 0 is
/// the device; others are the host, which decodes every format.
pub(crate) fn check_formats(device: &Device, wants: &[Wanted<'_>]) -> Result<(), RuntimeError> {
    let mut on_device = wants.iter().filter(|want| want.place == 0);
    Ok(on_device.try_for_each(|want| device.check_format(want.origin, want.ty))?)
}

/// Loads all weights of these graphs onto a device. Space is reserved first, so that a model that does not fit fails before gigabytes
/// are read.
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
