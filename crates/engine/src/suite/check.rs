//! Checks a case.

use std::collections::HashMap;

use super::Case;
use crate::{
    cpu::{CpuPlan, Data},
    error::EngineError,
    gpu::{Gpu, GpuPlan, Weights},
    graph::{Element, Graph, Origin, Type, Value, backward},
};

/// A failed case.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A result is wrong.
    #[error("result {result}[{index}] is {got}, should be {want} ± {bound}")]
    Wrong {
        /// Which result.
        result: usize,
        /// Index of the element.
        index: usize,
        /// The result.
        got: f32,
        /// The expected value.
        want: f32,
        /// The tolerance.
        bound: f32,
    },
    /// A gradient is wrong.
    #[error("the gradient of {input}[{index}] is {rule}, a finite difference says {numeric}")]
    Gradient {
        /// Which input.
        input: String,
        /// Index of the element.
        index: usize,
        /// The gradient by the rule.
        rule: f32,
        /// The gradient by a finite difference.
        numeric: f32,
    },
    /// The device failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Checks the reference against the case's literal, if it has one.
///
/// # Errors
/// If they differ.
pub fn check_cpu(case: &Case) -> Result<(), Failure> {
    let Some(literal) = &case.literal else { return Ok(()) };
    let got = &on_cpu(case)?[0];
    assert_eq!(
        got.len(),
        literal.len(),
        "{} {}: the literal has another length",
        case.op,
        case.name
    );
    let is_close = |got: f32, want: f32| {
        got == want || want.is_finite() && (got - want).abs() <= 1e-6 * (1.0 + want.abs())
    };
    let is_off = |(got, want): (&f32, &f32)| !is_close(*got, *want);
    match got.iter().zip(literal).position(is_off) {
        None => Ok(()),
        Some(index) => Err(Failure::Wrong {
            result: 0,
            index,
            got: got[index],
            want: literal[index],
            bound: 1e-6,
        }),
    }
}

/// Checks the device against the reference, with memory poisoned before the run.
///
/// # Errors
/// If they differ by more than the case's tolerance, or the device fails.
pub async fn check_gpu(case: &Case, gpu: &Gpu) -> Result<(), Failure> {
    let (want, got) = (on_cpu(case)?, on_gpu(case, gpu).await?);
    let tolerance = case.tolerance_on(gpu.facts());
    for (result, (got, want)) in got.iter().zip(&want).enumerate() {
        if let Some((index, bound)) = tolerance.broken_at(got, want) {
            return Err(Failure::Wrong {
                result,
                index,
                got: got[index],
                want: want[index],
                bound,
            });
        }
    }
    Ok(())
}

/// Checks the gradient rules against finite differences of `Σ dy · y`, on the reference, for every f32 input of the graph.
///
/// # Errors
/// If they differ.
pub fn check_gradient(case: &Case) -> Result<(), Failure> {
    if !case.gradient {
        return Ok(());
    }
    let mut graph = Graph::new();
    let result = (case.build)(&mut graph)[0];
    let inputs = differentiable(&graph);
    let seed = graph.input("dy", graph.ty(result).clone());
    let wrt: Vec<Value> = inputs.iter().map(|(value, _)| *value).collect();
    let gradients = backward(&mut graph, result, seed, &wrt);
    let plan = cpu_plan(case, graph)?;
    plan.run(&case.step);
    let dy = plan.read(seed);
    for ((value, name), gradient) in inputs.iter().zip(gradients) {
        let base = plan.read(*value);
        let rule = gradient.map_or_else(|| vec![0.0; base.len()], |gradient| plan.read(gradient));
        for index in sample(base.len()) {
            let mut loss = |delta: f32| -> f64 {
                let mut moved = base.clone();
                moved[index] += delta;
                plan.write(name, Data::F32(moved));
                plan.run(&case.step);
                plan.read(result)
                    .iter()
                    .zip(&dy)
                    .map(|(y, dy)| f64::from(*y) * f64::from(*dy))
                    .sum()
            };
            let numeric = central_difference(&mut loss);
            // The difference itself is accurate to about h² plus rounding over h; 2 % tells a wrong rule from a right one.
            if (numeric - rule[index]).abs() > 2e-2 * (0.1 + numeric.abs()) {
                return Err(Failure::Gradient {
                    input: name.clone(),
                    index,
                    rule: rule[index],
                    numeric,
                });
            }
        }
        plan.write(name, Data::F32(base));
        plan.run(&case.step);
    }
    Ok(())
}

fn central_difference(loss: &mut dyn FnMut(f32) -> f64) -> f32 {
    const H: f32 = 1.0 / 128.0;
    ((loss(H) - loss(-H)) / f64::from(2.0 * H)) as f32
}

/// Up to 24 indices, spread evenly.
fn sample(len: usize) -> impl Iterator<Item = usize> {
    (0..len).step_by(len.div_ceil(24).max(1))
}

fn on_cpu(case: &Case) -> Result<Vec<Vec<f32>>, EngineError> {
    let mut graph = Graph::new();
    let results = (case.build)(&mut graph);
    let plan = cpu_plan(case, graph)?;
    plan.run(&case.step);
    Ok(results.iter().map(|value| plan.read_any(*value)).collect())
}

/// A plan on the CPU with the case's data written.
fn cpu_plan(case: &Case, graph: Graph) -> Result<CpuPlan, EngineError> {
    let plan = CpuPlan::new(graph, |name, ty| Some(case.weight(name, ty)))?;
    let names: Vec<(String, Type)> =
        named(plan.graph()).map(|(_, name, ty)| (name.to_owned(), ty.clone())).collect();
    for (name, ty) in names {
        plan.write(&name, case.data(&name, &ty));
    }
    Ok(plan)
}

async fn on_gpu(case: &Case, gpu: &Gpu) -> Result<Vec<Vec<f32>>, EngineError> {
    let mut graph = Graph::new();
    let results = (case.build)(&mut graph);
    results.iter().for_each(|value| graph.keep(*value));
    let mut weights = Weights::new(gpu);
    for (_, info) in graph.values() {
        let (Some(key), Element::Weight(dtype)) = (info.origin.weight_name(), info.ty.element)
        else {
            continue;
        };
        weights.reserve(&key, dtype, &info.ty.shape).await?;
        for (name, first, ty) in info.origin.tensors(&info.ty) {
            weights.write(&key, first, &case.weight(name, &ty).parts[0])?;
        }
    }
    let plan = GpuPlan::new(graph, &weights, &mut HashMap::new()).await?;
    for (_, name, ty) in named(plan.graph()) {
        plan.write_data(name, ty, &case.data(name, ty));
    }
    plan.poison();
    plan.run(&case.step)?;
    let mut read = Vec::new();
    for value in results {
        read.push(plan.read_any(value).await?);
    }
    Ok(read)
}

/// The inputs of a graph that have gradients.
pub(super) fn differentiable(graph: &Graph) -> Vec<(Value, String)> {
    named(graph)
        .filter(|(value, _, ty)| {
            ty.element == Element::F32 && matches!(graph.info(*value).origin, Origin::Input(_))
        })
        .map(|(value, name, _)| (value, name.to_owned()))
        .collect()
}

/// Inputs and states of a graph.
pub(super) fn named(graph: &Graph) -> impl Iterator<Item = (Value, &str, &Type)> {
    graph.values().filter_map(|(value, info)| match &info.origin {
        Origin::Input(name) | Origin::State(name) => Some((value, name.as_str(), &info.ty)),
        Origin::Weight(_) | Origin::Stack(_) | Origin::Node(_) => None,
    })
}
