//! Where values come from.

use super::Type;
use crate::gpu::ROW_STEP;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Written by the host before a run.
    Input(String),
    /// A tensor of the model's file, by name; constant.
    Weight(String),
    /// Several tensors of one format and width, stacked by rows; otherwise like a weight.
    Stack(Vec<Member>),
    /// Outlives a run: KV caches, the last token.
    State(String),
    /// Computed by a node.
    Node(usize),
}

/// A tensor of a stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Member {
    /// Its name in the model's file.
    pub name: String,
    /// Number of rows.
    pub rows: usize,
}

impl Member {
    /// A tensor of `rows` rows.
    pub fn new(name: impl Into<String>, rows: usize) -> Self {
        Self { name: name.into(), rows }
    }

    /// Whether other rows may follow its own in a stack: rows are written to a device in groups of [`ROW_STEP`].
    pub fn stackable(&self) -> bool {
        self.rows.is_multiple_of(ROW_STEP)
    }
}

impl Origin {
    /// The name of a weight on a device: its tensor's, or its members' joined by `+`. `None` for other origins.
    pub fn weight_name(&self) -> Option<String> {
        match self {
            Self::Weight(name) => Some(name.clone()),
            Self::Stack(members) => {
                let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
                Some(names.join("+"))
            }
            Self::Input(_) | Self::State(_) | Self::Node(_) => None,
        }
    }

    /// The tensors of a weight of type `ty`, each with its first row and its own type; none for other origins.
    pub fn tensors<'a>(&'a self, ty: &Type) -> Vec<(&'a str, usize, Type)> {
        match self {
            Self::Weight(name) => vec![(name, 0, ty.clone())],
            Self::Stack(members) => {
                let mut first = 0;
                let with_first_row = |member: &'a Member| {
                    let shape = [member.rows, ty.shape.width()].into();
                    first += member.rows;
                    (member.name.as_str(), first - member.rows, Type { shape, ..ty.clone() })
                };
                members.iter().map(with_first_row).collect()
            }
            Self::Input(_) | Self::State(_) | Self::Node(_) => vec![],
        }
    }
}
