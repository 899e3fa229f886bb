//! Splits an image into patches: `y[patch, channel, row, column] = scale · (byte / 255 − middle)`, from RGBA pixels, which are blended over
//! white.

pub(crate) mod cases;

use bytemuck::NoUninit;

use crate::{
    cpu::CpuCall,
    gpu::{BufferRef, Dispatch, GpuCall, Kernel},
    graph::{Element, Graph, Op, Type, Value},
};

static CUT: Kernel = Kernel { name: "patches/cut", source: include_str!("cut.wgsl") };

/// Patches of an image, whose pixels are words: red in the lowest bits, then green, blue and alpha.
#[derive(Debug, Clone, PartialEq)]
pub struct Patches {
    /// Patches per row.
    pub columns: usize,
    /// Rows of patches.
    pub rows: usize,
    /// Side of a patch in pixels.
    pub side: usize,
    /// `(scale, middle)`: a value `v` in 0..=1 becomes `scale · (v − middle)`.
    pub range: (f32, f32),
}

impl Patches {
    /// Elements of a patch.
    fn elements(&self) -> usize {
        self.side * self.side * 3
    }

    /// Pixels of the image.
    pub fn pixels(&self) -> usize {
        self.columns * self.rows * self.side * self.side
    }
}

impl Graph {
    /// The patches of an image, `[pixels]`: `[columns · rows, 3 · side²]` in the order channel, row, column.
    pub fn patches(&mut self, pixels: Value, op: Patches) -> Value {
        self.apply(op, &[pixels])
    }
}

impl Op for Patches {
    fn name(&self) -> &'static str {
        "patches"
    }

    fn infer(&self, inputs: &[&Type]) -> Vec<Type> {
        let [pixels] = inputs else { panic!("patches takes pixels") };
        let fits = pixels.element == Element::U32 && pixels.shape.len() == self.pixels();
        assert!(fits, "patches: {pixels} for {self:?}");
        vec![Type::f32([self.columns * self.rows, self.elements()])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (pixels, mut y) = (call.u32(0), call.out(0));
        let square = self.side * self.side;
        for (patch, y) in y.chunks_exact_mut(self.elements()).enumerate() {
            for (i, y) in y.iter_mut().enumerate() {
                let row = patch / self.columns * self.side + i % square / self.side;
                let column = patch % self.columns * self.side + i % self.side;
                let pixel = pixels[row * self.columns * self.side + column];
                let byte = on_white(pixel >> (i / square * 8) & 255, pixel >> 24);
                *y = self.range.0 * (byte as f32 * (1.0 / 255.0) - self.range.1);
            }
        }
    }

    fn gpu(&self, call: &GpuCall<'_>) -> Vec<Dispatch> {
        let len = call.output(0).shape.len();
        let word = |n: usize| u32::try_from(n).expect("elements of an image fit 32 bits");
        let (scale, middle) = self.range;
        let (columns, side) = (word(self.columns), word(self.side));
        let op = Dispatch::new(&CUT)
            .params(&Params { len: word(len), columns, side, scale, middle })
            .read(BufferRef::Input(0))
            .write(BufferRef::Output(0));
        vec![op.grid_over(len.div_ceil(256))]
    }
}

/// A colour byte blended over white, rounded.
fn on_white(byte: u32, alpha: u32) -> u32 {
    (byte * alpha + 255 * (255 - alpha) + 127) / 255
}

#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Params {
    len: u32,
    columns: u32,
    side: u32,
    scale: f32,
    middle: f32,
}
