//! Shapes, element types, and what a wrong shape is called.

use std::fmt;

use rullama_gguf::DType;

/// Sizes of a value, outermost first: `[t, d]` is `t` rows of `d` numbers.
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

    /// How many rows of [`Self::width`] there are.
    pub fn rows(&self) -> usize {
        product(&self.0[..self.0.len().saturating_sub(1)])
    }

    /// How many numbers there are in all.
    pub fn len(&self) -> usize {
        product(&self.0)
    }

    /// Whether there are no numbers at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The product of some sizes. One too large for this platform stays the largest number instead of wrapping, and is then refused for the memory it
/// would take.
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

/// How one number is kept in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Element {
    /// Activations and gradients.
    F32,
    /// Token ids, expert ids, counts.
    U32,
    /// A weight in the format of its file; never written.
    Weight(DType),
    /// A cache in half precision.
    F16,
    /// A cache of bytes with one scale per 32 numbers.
    Q8,
}

/// What a value is: its shape and its element.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Type {
    /// Sizes, outermost first.
    pub shape: Shape,
    /// How a number is kept.
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

    /// A cache of this precision and shape.
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
