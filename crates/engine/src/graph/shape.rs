//! Shapes and element types.

use std::fmt;

use rullama_gguf::DType;

/// Sizes of a value, outermost first: `[t, d]` is `t` rows of `d` elements.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Shape(Vec<usize>);

impl Shape {
    /// The sizes, outermost first.
    pub fn dims(&self) -> &[usize] {
        &self.0
    }

    /// The innermost size: the length of a row.
    pub fn width(&self) -> usize {
        self.0.last().copied().unwrap_or(1)
    }

    /// Number of rows of [`Self::width`] elements.
    pub fn rows(&self) -> usize {
        product(&self.0[..self.0.len().saturating_sub(1)])
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        product(&self.0)
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The product of sizes. It saturates instead of wrapping, so that an overflow is refused as too much memory.
fn product(sizes: &[usize]) -> usize {
    sizes.iter().fold(1, |product: usize, size| product.saturating_mul(*size))
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(dims: [usize; N]) -> Self {
        Self(dims.into())
    }
}

impl From<Vec<usize>> for Shape {
    fn from(dims: Vec<usize>) -> Self {
        Self(dims)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, dim) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("x")?;
            }
            write!(f, "{dim}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{self}]")
    }
}

/// Storage of an element in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Element {
    /// Activations and gradients.
    F32,
    /// Token ids, expert ids, counts.
    U32,
    /// A weight in the format of its file; never written.
    Weight(DType),
    /// A KV cache in half precision.
    F16,
    /// A KV cache of int8 with one scale per 32 elements.
    Q8,
}

/// The type of a value: shape and element.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Type {
    /// Sizes, outermost first.
    pub shape: Shape,
    /// The element type.
    pub element: Element,
}

impl Type {
    /// Activations of this shape.
    pub fn f32(shape: impl Into<Shape>) -> Self {
        Self { shape: shape.into(), element: Element::F32 }
    }

    /// A weight of this format and shape.
    pub fn weight(dtype: DType, shape: impl Into<Shape>) -> Self {
        Self { shape: shape.into(), element: Element::Weight(dtype) }
    }

    /// A KV cache of this precision and shape.
    pub fn cache(element: Element, shape: impl Into<Shape>) -> Self {
        Self { shape: shape.into(), element }
    }

    /// Ids of this shape.
    pub fn u32(shape: impl Into<Shape>) -> Self {
        Self { shape: shape.into(), element: Element::U32 }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.element {
            Element::F32 => write!(f, "[{}]", self.shape),
            Element::U32 => write!(f, "u32[{}]", self.shape),
            Element::Weight(dtype) => write!(f, "{}[{}]", dtype.name(), self.shape),
            Element::F16 => write!(f, "f16[{}]", self.shape),
            Element::Q8 => write!(f, "q8[{}]", self.shape),
        }
    }
}
