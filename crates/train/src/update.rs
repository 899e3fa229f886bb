//! The update graph: clips gradients by their global norm, applies AdamW to every parameter, and clears the gradients.

use rullama_engine::{
    graph::{Graph, Type},
    ops::{AdamWStep, Trained},
};
use rullama_models::{Parameter, decoder::gradient_of};

/// Input: the values of an [`AdamWStep`].
pub(crate) const SETTINGS: &str = "settings";
/// Input: maximum global norm of the gradients `[1]`.
pub(crate) const LIMIT: &str = "limit";
/// Input: a zero `[1]`, the initial value of the sum of squares.
pub(crate) const ZERO: &str = "zero";

/// Names of the graph states of a parameter's first and second moment.
pub(crate) fn moments_of(parameter: &str) -> [String; 2] {
    [format!("{parameter}.first"), format!("{parameter}.second")]
}

/// Builds the graph.
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
