//! The graph of an update: AdamW over every parameter, gradients clipped by their common length, then cleared.

use rullama_engine::{
    graph::{Graph, Type},
    ops::{AdamWStep, Trained},
};
use rullama_models::{Parameter, gemma4::gradient_of};

/// Input: [`AdamWStep::numbers`].
pub(crate) const SETTINGS: &str = "settings";
/// Input: the longest the gradients may be together `[1]`.
pub(crate) const LIMIT: &str = "limit";
/// Input: one zero.
pub(crate) const ZERO: &str = "zero";

/// The state of a parameter's first and second moment.
pub(crate) fn moments_of(parameter: &str) -> [String; 2] {
    [format!("{parameter}.first"), format!("{parameter}.second")]
}

/// Writes the graph.
pub(crate) fn update_graph(parameters: &[Parameter], clips: bool) -> Graph {
    let mut graph = Graph::new();
    let mut settings = graph.input(SETTINGS, Type::f32([AdamWStep::LEN]));
    let states: Vec<_> = parameters
        .iter()
        .map(|Parameter { name, ty }| {
            let [first, second] = moments_of(name).map(|name| graph.state(name, ty.clone()));
            Trained {
                parameters: graph.state(name.clone(), ty.clone()),
                first,
                second,
                gradient: graph.state(gradient_of(name), ty.clone()),
            }
        })
        .collect();
    if clips {
        let zero = graph.input(ZERO, Type::f32([1]));
        let limit = graph.input(LIMIT, Type::f32([1]));
        let squares =
            states.iter().fold(zero, |total, trained| graph.square_sum(total, trained.gradient));
        settings = graph.clip_settings(settings, squares, limit);
    }
    for trained in &states {
        graph.adamw(trained, settings);
        graph.clear(trained.gradient);
    }
    graph
}
