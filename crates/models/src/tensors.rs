//! The tensors of a model, checked against its configuration.

use std::collections::HashMap;

use rullama_engine::graph::Type;
use rullama_gguf::{DType, Gguf, TensorInfo};

use crate::error::ModelError;

/// A tensor the configuration requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// Name in the file.
    pub name: String,
    /// Sizes, outermost first.
    pub dims: Vec<usize>,
    /// The keys that determine these sizes, for error messages.
    pub keys: &'static str,
    /// Whether a model may lack it.
    pub optional: bool,
    /// Tensors that together replace it if the file lacks it.
    pub instead: Vec<String>,
    /// Whether it is a convolution kernel, which is stored as one row of f32.
    pub flat: bool,
}

impl Expected {
    /// Whether a file has all the tensors that replace it.
    fn is_replaced(&self, gguf: &Gguf) -> bool {
        let there = |name: &String| gguf.tensor(name).is_some();
        !self.instead.is_empty() && self.instead.iter().all(there)
    }
}

/// The tensors of a model that fit its configuration, by name.
#[derive(Debug, Clone, Default)]
pub struct Catalog(HashMap<String, Type>);

impl Catalog {
    /// Looks up the expected tensors in a file and checks them.
    ///
    /// # Errors
    /// If tensors are missing, have a wrong shape or an unsupported format.
    pub fn of_file(gguf: &Gguf, expected: &[Expected]) -> Result<Self, ModelError> {
        let mut known = HashMap::new();
        let mut missing = Vec::new();
        for wanted in expected {
            match gguf.tensor(&wanted.name) {
                None if wanted.optional || wanted.is_replaced(gguf) => {}
                None => missing.push(wanted.name.clone()),
                Some(tensor) => {
                    known.insert(wanted.name.clone(), check(tensor, wanted)?);
                }
            }
        }
        if missing.is_empty() {
            Ok(Self(known))
        } else {
            Err(ModelError::MissingTensors { names: missing })
        }
    }

    /// A catalogue without a file: every expected tensor in a format of the caller's choice, for graphs that are counted or printed, not
    /// run.
    pub fn imagined(expected: &[Expected], dtype: impl Fn(&Expected) -> Option<DType>) -> Self {
        let known = expected.iter().filter_map(|wanted| {
            let ty = stored(dtype(wanted)?, wanted);
            Some((wanted.name.clone(), ty))
        });
        Self(known.collect())
    }

    /// Prefixes all tensor names, for graphs with weights of two files.
    #[must_use]
    pub fn prefixed(self, prefix: &str) -> Self {
        Self(self.0.into_iter().map(|(name, ty)| (format!("{prefix}{name}"), ty)).collect())
    }

    /// Adds a tensor.
    pub fn add(&mut self, name: impl Into<String>, ty: Type) {
        self.0.insert(name.into(), ty);
    }

    /// The type of a tensor.
    pub fn get(&self, name: &str) -> Option<&Type> {
        self.0.get(name)
    }

    /// All tensors.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Type)> {
        self.0.iter().map(|(name, ty)| (name.as_str(), ty))
    }
}

/// The type a tensor is loaded as: norms and scales (1-D) as f32, the patch embedding (4-D) as a matrix.
fn stored(dtype: DType, wanted: &Expected) -> Type {
    match wanted.dims.as_slice() {
        dims if wanted.flat => Type::weight(DType::F32, [dims.iter().product::<usize>()]),
        [length] => Type::weight(DType::F32, [*length]),
        [out, rest @ ..] if rest.len() == 3 => Type::weight(dtype, [*out, rest.iter().product()]),
        dims => Type::weight(dtype, dims.to_vec()),
    }
}

fn check(tensor: &TensorInfo, wanted: &Expected) -> Result<Type, ModelError> {
    let file: Vec<u64> = tensor.dims().iter().rev().copied().collect();
    // Trailing dimensions of one are not always written.
    let trimmed = |dims: &[u64]| dims.iter().copied().skip_while(|d| *d == 1).collect::<Vec<_>>();
    let dims: Vec<u64> = wanted.dims.iter().map(|d| *d as u64).collect();
    if trimmed(&file) != trimmed(&dims) {
        return Err(ModelError::WrongShape {
            name: wanted.name.clone(),
            found: shape(tensor.dims()),
            wanted: shape(&dims.iter().rev().copied().collect::<Vec<_>>()),
            keys: wanted.keys,
        });
    }
    if !tensor.dtype().decodable() {
        let (name, format) = (wanted.name.clone(), tensor.dtype().name());
        return Err(ModelError::UnsupportedFormat { name, format });
    }
    if usize::try_from(tensor.elements()).is_err() {
        let (name, elements) = (wanted.name.clone(), tensor.elements());
        return Err(ModelError::TooManyElements { name, elements });
    }
    Ok(stored(tensor.dtype(), wanted))
}

fn shape(dims: &[u64]) -> String {
    dims.iter().map(u64::to_string).collect::<Vec<_>>().join(" × ")
}
