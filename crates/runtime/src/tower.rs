//! What all towers share: their weights, their limits, and a run.

use std::collections::HashMap;

use rullama_engine::{
    cpu::Data,
    executor::{Device, Memory, Plan, Weights},
    graph::{Element, Graph, Origin, Step, Type, Value},
};
use rullama_gguf::{DType, Gguf};
use rullama_models::gemma4::Clamps;

use crate::error::RuntimeError;

/// Rows that stand in a prompt where a picture or a sound is.
#[derive(Debug, Clone, PartialEq)]
pub struct SoftTokens {
    /// How many.
    pub count: usize,
    /// Their numbers, row by row.
    pub values: Vec<f32>,
}

/// What the host writes before a run.
pub(crate) type Inputs = Vec<(&'static str, Vec<f32>)>;

/// The limits of these products, from the small tensors that hold them.
pub(crate) async fn clamps(
    gguf: &Gguf,
    products: &[String],
    packed: Option<&str>,
) -> Result<Clamps, RuntimeError> {
    let mut numbers = HashMap::new();
    for name in Clamps::tensors(products) {
        if let Some(tensor) = gguf.tensor(&name) {
            numbers.insert(name, gguf.rows_f32(tensor, 0..tensor.rows()).await?);
        }
    }
    let packed = match packed.and_then(|name| gguf.tensor(name)) {
        Some(tensor) => gguf.rows_f32(tensor, 0..tensor.rows()).await?,
        None => Vec::new(),
    };
    Ok(Clamps::new(products, &numbers, &packed))
}

/// All weights that a list uses, on the device.
pub(crate) async fn weights(
    gguf: &Gguf,
    device: &Device,
    list: &Graph,
) -> Result<Weights, RuntimeError> {
    let mut weights = Weights::new(device);
    let wanted = list.values().filter(|(_, info)| info.origin.weight_name().is_some());
    for (_, info) in wanted {
        load(gguf, &mut weights, &info.origin, &info.ty, "").await?;
    }
    weights.settle().await?;
    Ok(weights)
}

/// Brings a weight to the device, whose name in the list has `prefix` in front. Such models are small: a tensor at a time.
pub(crate) async fn load(
    gguf: &Gguf,
    weights: &mut Weights,
    origin: &Origin,
    ty: &Type,
    prefix: &str,
) -> Result<(), RuntimeError> {
    weights.reserve(origin, ty).await?;
    for (name, first, ty) in origin.tensors(ty) {
        let tensor = gguf
            .tensor(name.strip_prefix(prefix).unwrap_or(name))
            .expect("the catalogue was made from this file");
        let rows = 0..tensor.rows();
        let bytes = if ty.element == Element::Weight(DType::F32) && tensor.dtype() != DType::F32 {
            let numbers = gguf.rows_f32(tensor, rows).await?;
            numbers.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>().into()
        } else {
            gguf.read_rows(tensor, rows).await?
        };
        weights.write(origin, name, first, bytes)?;
    }
    Ok(())
}

/// One run of a list of its own over so many rows, and some of its values.
pub(crate) async fn run(
    list: Graph,
    weights: &Weights,
    device: &Device,
    inputs: Inputs,
    (count, values): (usize, &[Value]),
) -> Result<Vec<Data>, RuntimeError> {
    let mut memory = Memory::new(device);
    let plan = Plan::new(list, weights, &mut memory).await?;
    for (name, numbers) in inputs {
        plan.write_numbers(name, numbers);
    }
    let step = Step { position: 0, count: count as u32, ..Step::default() };
    Ok(plan.run_reading(&step, values).await?.wait().await?)
}
