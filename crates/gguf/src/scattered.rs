//! Reads many small tensors with few requests, because over a network each has its latency.

use crate::{Gguf, GgufError, PendingRead, TensorInfo};

/// Largest gap between two tensors that is read, too, instead of a second request.
const GAP: u64 = 64 << 10;

/// Neighbouring tensors that are read together, as indices of the requested tensors.
struct Run<'a> {
    tensors: &'a [usize],
    read: PendingRead<'a>,
}

impl Gguf {
    /// Reads small tensors as f32, in the given order. Neighbours in the file are read together, and all reads start before
    /// the first is awaited.
    pub async fn scattered_f32(&self, tensors: &[&TensorInfo]) -> Result<Vec<Vec<f32>>, GgufError> {
        let mut order: Vec<usize> = (0..tensors.len()).collect();
        order.sort_by_key(|&i| (tensors[i].part(), tensors[i].offset()));
        let adjacent = |a: &usize, b: &usize| {
            let (a, b) = (tensors[*a], tensors[*b]);
            a.part() == b.part() && b.offset().saturating_sub(end(a)) <= GAP
        };
        let runs = order.chunk_by(adjacent).map(|run| self.begin(run, tensors));
        let runs: Vec<Run<'_>> = runs.collect::<Result<_, _>>()?;
        let mut values = vec![Vec::new(); tensors.len()];
        for Run { tensors: run, read } in runs {
            let first = read.at;
            let bytes = read.bytes().await?;
            for &i in run {
                let tensor = tensors[i];
                let at = tensor.addressable(tensor.offset() - first)?;
                let elements = tensor.decodable(tensor.rows())?;
                let length = tensor.addressable(tensor.nbytes())?;
                values[i] = tensor.decode(elements, &bytes[at..at + length])?;
            }
        }
        Ok(values)
    }

    /// Starts to read the bytes from the first to the last tensor of `run`, which is in file order.
    fn begin<'a>(
        &'a self,
        run: &'a [usize],
        tensors: &[&TensorInfo],
    ) -> Result<Run<'a>, GgufError> {
        let all = || run.iter().map(|&i| tensors[i]);
        for tensor in all() {
            tensor.decodable(tensor.rows())?;
        }
        let first = all().next().expect("no run is empty");
        let last = all().map(end).max().unwrap_or_default();
        Ok(Run { tensors: run, read: self.request(first, first.offset()..last)? })
    }
}

fn end(tensor: &TensorInfo) -> u64 {
    // No overflow: the tensor is inside its file.
    tensor.offset() + tensor.nbytes()
}
