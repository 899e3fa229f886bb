//! Many small tensors at once: over a network each read is a journey of its own.

use crate::{Asked, Gguf, GgufError, TensorInfo};

/// Bytes between two tensors that are rather read along than left out by a second read.
const GAP: u64 = 64 << 10;

/// Neighbours that are read together, by their numbers among those wanted.
struct Run<'a> {
    tensors: &'a [usize],
    asked: Asked<'a>,
}

impl Gguf {
    /// All numbers of small tensors, in the order they are given in. Neighbours are read together, and the source is asked for
    /// everything before anything is waited for.
    pub async fn scattered_f32(&self, tensors: &[&TensorInfo]) -> Result<Vec<Vec<f32>>, GgufError> {
        let mut order: Vec<usize> = (0..tensors.len()).collect();
        order.sort_by_key(|&i| (tensors[i].part(), tensors[i].offset()));
        let near = |a: &usize, b: &usize| {
            let (a, b) = (tensors[*a], tensors[*b]);
            a.part() == b.part() && b.offset().saturating_sub(end(a)) <= GAP
        };
        let runs = order.chunk_by(near).map(|run| self.begin(run, tensors));
        let runs: Vec<Run<'_>> = runs.collect::<Result<_, _>>()?;
        let mut numbers = vec![Vec::new(); tensors.len()];
        for Run { tensors: run, asked } in runs {
            let first = asked.at;
            let bytes = asked.bytes().await?;
            for &i in run {
                let tensor = tensors[i];
                let at = tensor.addressable(tensor.offset() - first)?;
                let elements = tensor.decodable(tensor.rows())?;
                let length = tensor.addressable(tensor.nbytes())?;
                numbers[i] = tensor.decode(elements, &bytes[at..at + length])?;
            }
        }
        Ok(numbers)
    }

    /// Requests what lies from the first to the last of some tensors, which are in the file's order.
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
        Ok(Run { tensors: run, asked: self.ask(first, first.offset()..last)? })
    }
}

fn end(tensor: &TensorInfo) -> u64 {
    // No overflow: it lies inside its file.
    tensor.offset() + tensor.nbytes()
}
