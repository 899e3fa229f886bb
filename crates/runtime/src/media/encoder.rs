//! What all towers share: their weights, their limits, and a run.

use std::{cell::RefCell, collections::HashMap, ops::ControlFlow, rc::Rc, task::Poll};

use rullama_engine::{
    cpu::Data,
    executor::{Device, Memory, Plan, Weights},
    gpu::{profile::Table, work_bytes},
    graph::{Cost, Graph, Origin, Step, Value},
};
use rullama_gguf::Gguf;
use rullama_models::{ModelError, gemma4::Clamps};

use crate::{error::RuntimeError, loader::all_weights, model::weight_bytes};

/// Rows that stand in a prompt where a picture or a sound is.
#[derive(Debug, Clone, PartialEq)]
pub struct SoftTokens {
    /// How many.
    pub count: usize,
    /// Their numbers, row by row.
    pub values: Vec<f32>,
}

/// What the host writes before a run.
pub(crate) type Inputs = Vec<(&'static str, Data)>;

/// The limits of these products, from the small tensors that hold them.
pub(crate) async fn clamps(
    gguf: &Gguf,
    products: &[String],
    packed: Option<&str>,
) -> Result<Clamps, RuntimeError> {
    let tensors: Vec<_> =
        Clamps::tensors(products).iter().filter_map(|name| gguf.tensor(name)).collect();
    if let Some(tensor) = tensors.iter().find(|tensor| tensor.elements() != 1) {
        let (name, found) = (tensor.name().to_owned(), format!("{} numbers", tensor.elements()));
        let (wanted, keys) = ("one number".to_owned(), "limits of products");
        return Err(ModelError::WrongShape { name, found, wanted, keys }.into());
    }
    let numbers = gguf.scattered_f32(&tensors).await?;
    let names = tensors.iter().map(|tensor| tensor.name().to_owned());
    let numbers: HashMap<_, _> = names.zip(numbers).collect();
    let packed = match packed.and_then(|name| gguf.tensor(name)) {
        Some(tensor) => gguf.rows_f32(tensor, 0..tensor.rows()).await?,
        None => Vec::new(),
    };
    Ok(Clamps::new(products, &numbers, &packed))
}

/// Bytes on a GPU that a graph takes with its weights.
pub(crate) fn bytes_with_weights(graph: &Graph) -> u64 {
    let weights = graph.values().filter_map(|(_, info)| match info.origin {
        Origin::Weight(_) | Origin::Stack(_) => Some(weight_bytes(&info.ty)),
        _ => None,
    });
    weights.sum::<u64>() + work_bytes(graph)
}

/// All weights that a tower uses, on the device.
pub(crate) async fn weights(
    gguf: &Gguf,
    device: &Device,
    graph: Graph,
) -> Result<Weights, RuntimeError> {
    all_weights(gguf, device, &[graph], &mut |_| ControlFlow::Continue(())).await
}

/// A graph made ready, and the value it is run for.
#[derive(Debug)]
pub(crate) struct Ready {
    plan: Plan,
    result: Value,
}

impl Ready {
    pub(crate) async fn new(
        graph: Graph,
        result: Value,
        weights: &Weights,
        device: &Device,
    ) -> Result<Self, RuntimeError> {
        let plan = Plan::new(graph, weights, &mut Memory::new(device)).await?;
        Ok(Self { plan, result })
    }

    /// Writes inputs; they stay until others are written.
    pub(crate) fn write(&self, inputs: Inputs) {
        for (name, data) in inputs {
            match data {
                Data::F32(numbers) => self.plan.write_numbers(name, numbers),
                Data::U32(words) => self.plan.write_ids(name, words),
                other => unreachable!("{name} is a weight: {other:?}"),
            }
        }
    }

    /// Writes an input of words, from bytes.
    pub(crate) fn write_words(&self, name: &str, bytes: &[u8]) {
        self.plan.write_words(name, bytes);
    }

    /// One run over so many rows, and its result.
    pub(crate) async fn run(&self, inputs: Inputs, rows: usize) -> Result<Vec<f32>, RuntimeError> {
        let mut data = self.run_reading(inputs, rows, &[self.result]).await?;
        Ok(match data.pop() {
            Some(Data::F32(values)) => values,
            _ => Vec::new(),
        })
    }

    /// One run over so many rows, and some of its values.
    pub(crate) async fn run_reading(
        &self,
        inputs: Inputs,
        rows: usize,
        values: &[Value],
    ) -> Result<Vec<Data>, RuntimeError> {
        self.write(inputs);
        let arriving = self.plan.run_reading(&step(rows), values).await?;
        hand_over().await;
        // Frames and pieces come one after the other: the next one's commands are made while the device is busy with this one.
        self.plan.prepare();
        Ok(arriving.wait().await?)
    }

    /// What a run over so many rows costs.
    pub(crate) fn cost(&self, rows: usize) -> Cost {
        self.plan.cost(&step(rows))
    }

    /// A clock around every dispatch of a run over so many rows; nothing on the CPU.
    pub(crate) async fn profile(&self, rows: usize) -> Result<Option<Table>, RuntimeError> {
        Ok(self.plan.profile(&step(rows)).await?)
    }

    pub(crate) fn gpu_bytes(&self) -> u64 {
        self.plan.gpu_bytes()
    }
}

/// The graph that was run last, and what it was made for: pictures often come in one size, and so do long sounds' pieces.
#[derive(Debug)]
pub(crate) struct Last<K>(RefCell<Option<(K, Rc<Ready>)>>);

impl<K> Default for Last<K> {
    fn default() -> Self {
        Self(RefCell::new(None))
    }
}

impl<K: PartialEq> Last<K> {
    /// The graph if it is for this; one for something else makes room.
    pub(crate) fn get(&self, key: &K) -> Option<Rc<Ready>> {
        let mut last = self.0.borrow_mut();
        last.take_if(|(known, _)| known != key);
        last.as_ref().map(|(_, ready)| ready.clone())
    }

    pub(crate) fn put(&self, key: K, ready: Rc<Ready>) {
        *self.0.borrow_mut() = Some((key, ready));
    }

    pub(crate) fn gpu_bytes(&self) -> u64 {
        self.0.borrow().as_ref().map_or(0, |(_, ready)| ready.gpu_bytes())
    }
}

/// Lets others go on. Browsers hand what was queued to the device when nobody runs, so what is made ahead must wait a moment: the
/// device would wait for it.
async fn hand_over() {
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

    /// The limit `q.input_max`, as so many numbers.
    fn file(numbers: &[f32]) -> Gguf {
        let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        let writer =
            Writer::new().tensor("q.input_max", &[numbers.len() as u64], DType::F32, bytes);
        let source = MemorySource::new("limits.gguf", writer.finish().expect("a file"));
        pollster::block_on(Gguf::open(Rc::new(source))).expect("it opens")
    }

    #[test]
    fn limits_are_single_numbers() {
        let products = ["q".to_owned(), "k".to_owned()];
        let found = pollster::block_on(clamps(&file(&[2.5]), &products, None)).expect("a limit");
        let unlimited = f32::INFINITY;
        assert_eq!(found.get("q"), Some([-unlimited, 2.5, -unlimited, unlimited]));
        assert_eq!(found.get("k"), None);
        let refused = pollster::block_on(clamps(&file(&[2.5, 3.0]), &products, None));
        let wrong = matches!(
            &refused,
            Err(RuntimeError::Model(ModelError::WrongShape { name, .. })) if name == "q.input_max"
        );
        assert!(wrong, "{refused:?}");
    }
}
