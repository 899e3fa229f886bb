//! Checks whether an adapter fits a model.

use crate::{Adapter, Pair, error::AdapterError};

/// What a model has under a tensor name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A matrix that can be adapted, or the matrices of all experts.
    Matrix {
        /// Number of matrices: experts, or 1.
        experts: usize,
        /// Output features.
        rows: usize,
        /// Input features.
        columns: usize,
    },
    /// A tensor that is never computed: keys and values of a layer that shares another layer's KV cache.
    Unused,
    /// No such tensor.
    Absent,
}

/// The pairs of an adapter that fit a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit<'a> {
    /// Pairs with an effect.
    pub pairs: Vec<&'a Pair>,
    /// Tensors of pairs without effect, since the model does not compute them.
    pub without_effect: Vec<&'a str>,
}

/// Why an adapter does not fit a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misfit {
    /// Trained for another architecture.
    Architecture {
        /// The adapter's.
        found: String,
        /// The model's.
        wanted: String,
    },
    /// The model has no such tensor.
    Absent {
        /// Its name.
        tensor: String,
    },
    /// The tensor has another shape.
    Shape {
        /// Its name.
        tensor: String,
        /// Experts, rows and columns by the adapter.
        found: [usize; 3],
        /// Experts, rows and columns in the model.
        wanted: [usize; 3],
    },
}

impl Adapter {
    /// The pairs that change a model of `architecture`; `target` looks up the model's tensors by name.
    ///
    /// # Errors
    /// If any pair does not fit; the error lists all of them.
    pub fn fit(
        &self,
        architecture: &str,
        target: impl Fn(&str) -> Target,
    ) -> Result<Fit<'_>, AdapterError> {
        let mut fit = Fit { pairs: Vec::new(), without_effect: Vec::new() };
        let mut misfits = Vec::new();
        if let Some(found) = self.architecture.as_ref().filter(|found| *found != architecture) {
            let (found, wanted) = (found.clone(), architecture.into());
            misfits.push(Misfit::Architecture { found, wanted });
        }
        for pair in &self.pairs {
            let tensor = pair.tensor.clone();
            let found = [pair.experts, pair.rows, pair.columns];
            match target(&pair.tensor) {
                Target::Unused => fit.without_effect.push(&pair.tensor),
                Target::Absent => misfits.push(Misfit::Absent { tensor }),
                Target::Matrix { experts, rows, columns } => {
                    let wanted = [experts, rows, columns];
                    if found == wanted {
                        fit.pairs.push(pair);
                    } else {
                        misfits.push(Misfit::Shape { tensor, found, wanted });
                    }
                }
            }
        }
        if misfits.is_empty() {
            return Ok(fit);
        }
        Err(AdapterError::DoesNotFit { name: self.name.clone(), misfits })
    }
}

impl std::fmt::Display for Misfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Architecture { found, wanted } => {
                write!(f, "it was made for {found:?}, the model is {wanted:?}")
            }
            Self::Absent { tensor } => write!(f, "the model has no {tensor:?}"),
            Self::Shape { tensor, found, wanted } => {
                let (found, wanted) = (shape(*found), shape(*wanted));
                write!(f, "{tensor:?} is {wanted} in the model, {found} in the adapter")
            }
        }
    }
}

fn shape([experts, rows, columns]: [usize; 3]) -> String {
    match experts {
        1 => format!("{rows} × {columns}"),
        _ => format!("{experts} experts of {rows} × {columns}"),
    }
}

/// The misfits for a message, at most `SHOWN` of them.
pub(crate) fn list(misfits: &[Misfit]) -> String {
    const SHOWN: usize = 24;
    let shown: Vec<String> = misfits.iter().take(SHOWN).map(ToString::to_string).collect();
    let more = misfits.len().saturating_sub(SHOWN);
    let rest = if more > 0 { format!("; and {more} others") } else { String::new() };
    shown.join("; ") + &rest
}
