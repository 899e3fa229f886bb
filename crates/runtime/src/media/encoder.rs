//! Shared parts of the vision and audio encoders: loading, clamps, and passes.

use std::{cell::RefCell, collections::HashMap, ops::ControlFlow, rc::Rc, task::Poll};

use rullama_engine::{
    cpu::Data,
    executor::{Device, Memory, Plan, Weights},
    gpu::{profile::Table, work_bytes},
    graph::{Cost, Origin, Step, Value},
};
use rullama_gguf::Gguf;
use rullama_models::{Catalog, EncoderGraph, Expected, ModelError, gemma4::Clamps};

use crate::{
    error::RuntimeError,
    loader::all_weights,
    session::{Tap, keep_tapped, tap},
};

/// Embeddings of an image or audio clip in a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct SoftTokens {
    /// Number of soft tokens.
    pub count: usize,
    /// Their elements, row-major.
    pub values: Vec<f32>,
}

/// Inputs that the host writes before a pass.
pub(super) type Inputs = Vec<(&'static str, Input)>;

/// An input of a graph.
pub(super) enum Input {
    /// f32 values.
    F32(Vec<f32>),
    /// `u32` words, as bytes.
    Words(Vec<u8>),
}

/// Architecture of an encoder.
pub(super) trait Architecture: Sized {
    /// Size that a graph is built for: of an image, or of a piece of audio.
    type Size: Copy + PartialEq;
    /// A tensor that holds all clamps, in some files.
    const PACKED_CLAMPS: Option<&'static str>;

    /// Reads the architecture from a file, without clamps; `None` if the file has no such encoder.
    fn of_file(gguf: &Gguf) -> Result<Option<Self>, RuntimeError>;
    /// Names of clamped matmuls, and the destination of their clamps.
    fn clamped(&mut self) -> Option<(Vec<String>, &mut Clamps)>;
    /// Width of a soft token.
    fn out(&self) -> usize;
    /// The expected tensors.
    fn expected(&self) -> Vec<Expected>;
    /// The smallest size; its graph uses every weight.
    fn smallest(&self) -> Self::Size;
    /// The size that memory is estimated for.
    fn usual(&self) -> Self::Size;
    /// The graph for a size, on a device that can bind at most `most_bytes` of a value.
    fn graph(&self, catalog: &Catalog, size: Self::Size, most_bytes: u64) -> EncoderGraph;
    /// Rows of a pass.
    fn rows(size: Self::Size) -> usize;
    /// Inputs that depend on the size alone.
    async fn constants(&self, gguf: &Gguf, size: Self::Size) -> Result<Inputs, RuntimeError>;
}

/// An encoder whose weights are on a device.
#[derive(Debug)]
pub(super) struct Encoder<A: Architecture> {
    gguf: Rc<Gguf>,
    device: Device,
    pub(super) architecture: A,
    catalog: Catalog,
    weights: Weights,
    last: Last<A::Size>,
}

impl<A: Architecture> Encoder<A> {
    /// Loads the encoder of a projector file, or of a model file that contains it; `None` if there is none.
    pub(super) async fn load(
        gguf: Rc<Gguf>,
        device: Device,
        width: usize,
    ) -> Result<Option<Self>, RuntimeError> {
        let Some(mut architecture) = A::of_file(&gguf)? else { return Ok(None) };
        if let Some((matmuls, found)) = architecture.clamped() {
            *found = clamps(&gguf, &matmuls, A::PACKED_CLAMPS).await?;
        }
        if architecture.out() != width {
            return Err(RuntimeError::OtherTower { tower: architecture.out(), model: width });
        }
        let catalog = Catalog::of_file(&gguf, &architecture.expected())?;
        let graph =
            architecture.graph(&catalog, architecture.smallest(), device.most_bytes()).graph;
        let mut go_on = |_| ControlFlow::Continue(());
        let weights = all_weights(&gguf, &device, &[graph], &mut go_on).await?;
        Ok(Some(Self { gguf, device, architecture, catalog, weights, last: Last::default() }))
    }

    /// Estimated GPU bytes of a file's encoder for an input of the usual size, from its header; 0 if there is none.
    pub(super) fn memory_of_file(gguf: &Gguf) -> Result<u64, RuntimeError> {
        let Some(architecture) = A::of_file(gguf)? else { return Ok(0) };
        let catalog = Catalog::of_file(gguf, &architecture.expected())?;
        let graph = architecture.graph(&catalog, architecture.usual(), u64::MAX).graph;
        let weights = graph.values().filter_map(|(_, info)| match info.origin {
            Origin::Weight(_) | Origin::Stack(_) => Some(info.ty.bytes()),
            _ => None,
        });
        Ok(weights.sum::<u64>() + work_bytes(&graph))
    }

    /// Bytes on the GPU.
    pub(super) fn gpu_bytes(&self) -> u64 {
        self.weights.gpu_bytes() + self.last.gpu_bytes()
    }

    /// The soft tokens of one input, row-major.
    pub(super) async fn encode(
        &self,
        size: A::Size,
        inputs: Inputs,
    ) -> Result<Vec<f32>, RuntimeError> {
        self.prepared(size).await?.run(inputs, A::rows(size)).await
    }

    /// Every tapped value.
    pub(super) async fn trace(
        &self,
        size: A::Size,
        inputs: Inputs,
    ) -> Result<Vec<Tap>, RuntimeError> {
        let EncoderGraph { mut graph, result } = self.graph(size);
        let values = keep_tapped(&mut graph);
        let names: Vec<_> = values.iter().map(|value| graph.info(*value).clone()).collect();
        let prepared = self.prepare(EncoderGraph { graph, result }, size).await?;
        let data = prepared.run_reading(inputs, A::rows(size), &values).await?;
        Ok(names.iter().zip(data).map(|(info, data)| tap(info, data)).collect())
    }

    /// Cost of an input of this size, and a profile if the device has timestamps.
    pub(super) async fn profile(
        &self,
        size: A::Size,
    ) -> Result<(Cost, Option<Table>), RuntimeError> {
        let prepared = self.prepared(size).await?;
        let step = step(A::rows(size));
        Ok((prepared.plan.cost(&step), prepared.plan.profile(&step).await?))
    }

    /// The prepared graph for this size; the last one is reused.
    async fn prepared(&self, size: A::Size) -> Result<Rc<PreparedGraph>, RuntimeError> {
        if let Some(prepared) = self.last.get(&size) {
            return Ok(prepared);
        }
        let prepared = Rc::new(self.prepare(self.graph(size), size).await?);
        self.last.put(size, prepared.clone());
        Ok(prepared)
    }

    async fn prepare(
        &self,
        EncoderGraph { graph, result }: EncoderGraph,
        size: A::Size,
    ) -> Result<PreparedGraph, RuntimeError> {
        let plan = Plan::new(graph, &self.weights, &mut Memory::new(&self.device)).await?;
        let prepared = PreparedGraph { plan, result };
        prepared.write(self.architecture.constants(&self.gguf, size).await?);
        Ok(prepared)
    }

    fn graph(&self, size: A::Size) -> EncoderGraph {
        self.architecture.graph(&self.catalog, size, self.device.most_bytes())
    }
}

/// The clamps of these matmuls, from the small tensors that hold them.
async fn clamps(
    gguf: &Gguf,
    matmuls: &[String],
    packed: Option<&str>,
) -> Result<Clamps, RuntimeError> {
    let tensors: Vec<_> =
        Clamps::tensors(matmuls).iter().filter_map(|name| gguf.tensor(name)).collect();
    if let Some(tensor) = tensors.iter().find(|tensor| tensor.elements() != 1) {
        let (name, found) = (tensor.name().to_owned(), format!("{} values", tensor.elements()));
        let (wanted, keys) = ("one value".to_owned(), "clamps of matmuls");
        return Err(ModelError::WrongShape { name, found, wanted, keys }.into());
    }
    let values = gguf.scattered_f32(&tensors).await?;
    let names = tensors.iter().map(|tensor| tensor.name().to_owned());
    let scalars: HashMap<_, _> = names.zip(values).collect();
    let packed = match packed.and_then(|name| gguf.tensor(name)) {
        Some(tensor) => gguf.rows_f32(tensor, 0..tensor.rows()).await?,
        None => Vec::new(),
    };
    Ok(Clamps::new(matmuls, &scalars, &packed))
}

/// A plan and its result.
#[derive(Debug)]
struct PreparedGraph {
    plan: Plan,
    result: Value,
}

impl PreparedGraph {
    /// Writes inputs; they stay until others are written.
    fn write(&self, inputs: Inputs) {
        for (name, input) in inputs {
            match input {
                Input::F32(values) => self.plan.write_f32(name, values),
                Input::Words(bytes) => self.plan.write_words(name, &bytes),
            }
        }
    }

    /// Runs one pass over this number of rows and returns its result.
    async fn run(&self, inputs: Inputs, rows: usize) -> Result<Vec<f32>, RuntimeError> {
        let mut data = self.run_reading(inputs, rows, &[self.result]).await?;
        Ok(match data.pop() {
            Some(Data::F32(values)) => values,
            _ => Vec::new(),
        })
    }

    /// Runs one pass over this number of rows and reads back values.
    async fn run_reading(
        &self,
        inputs: Inputs,
        rows: usize,
        values: &[Value],
    ) -> Result<Vec<Data>, RuntimeError> {
        self.write(inputs);
        let arriving = self.plan.run_reading(&step(rows), values).await?;
        yield_once().await;
        // Frames and pieces often follow each other: record the commands of the next pass while the device is busy.
        self.plan.prepare();
        Ok(arriving.wait().await?)
    }
}

/// The last graph and its size: consecutive images and pieces of audio often have the same size.
#[derive(Debug)]
struct Last<K>(RefCell<Option<(K, Rc<PreparedGraph>)>>);

impl<K> Default for Last<K> {
    fn default() -> Self {
        Self(RefCell::new(None))
    }
}

impl<K: PartialEq> Last<K> {
    /// The graph if it is for this size; one for another size is dropped to free its memory.
    fn get(&self, key: &K) -> Option<Rc<PreparedGraph>> {
        let mut last = self.0.borrow_mut();
        last.take_if(|(known, _)| known != key);
        last.as_ref().map(|(_, prepared)| prepared.clone())
    }

    fn put(&self, key: K, prepared: Rc<PreparedGraph>) {
        *self.0.borrow_mut() = Some((key, prepared));
    }

    fn gpu_bytes(&self) -> u64 {
        self.0.borrow().as_ref().map_or(0, |(_, prepared)| prepared.plan.gpu_bytes())
    }
}

/// Yields to the event loop once: browsers submit queued commands when no script runs, so recording the next pass must not delay
/// that.
async fn yield_once() {
    let mut waited = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn step(rows: usize) -> Step {
    Step { position: 0, count: rows as u32, ..Step::default() }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use rullama_gguf::{DType, Gguf, Writer};
    use rullama_models::ModelError;
    use rullama_source::MemorySource;

    use super::{RuntimeError, clamps};

    /// A file with the clamp `q.input_max`, with these values.
    fn file(values: &[f32]) -> Gguf {
        let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        let writer = Writer::new().tensor("q.input_max", &[values.len() as u64], DType::F32, bytes);
        let source = MemorySource::new("limits.gguf", writer.finish().expect("a file"));
        pollster::block_on(Gguf::open(Rc::new(source))).expect("it opens")
    }

    #[test]
    fn clamps_are_scalars() {
        let matmuls = ["q".to_owned(), "k".to_owned()];
        let found = pollster::block_on(clamps(&file(&[2.5]), &matmuls, None)).expect("a limit");
        let unlimited = f32::INFINITY;
        assert_eq!(found.get("q"), Some([-unlimited, 2.5, -unlimited, unlimited]));
        assert_eq!(found.get("k"), None);
        let refused = pollster::block_on(clamps(&file(&[2.5, 3.0]), &matmuls, None));
        let wrong = matches!(
            &refused,
            Err(RuntimeError::Model(ModelError::WrongShape { name, .. })) if name == "q.input_max"
        );
        assert!(wrong, "{refused:?}");
    }
}
