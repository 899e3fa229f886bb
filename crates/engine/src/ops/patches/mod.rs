//! A picture cut into squares: `y[patch, channel, row, column] = scale · (byte / 255 − middle)`, from pixels of red, green, blue and
//! alpha, which are laid on white.

pub(crate) mod cases;

use bytemuck::NoUninit;

use crate::{
    cpu::CpuCall,
    gpu::{BufferRef, Dispatch, GpuCall, Kernel},
    graph::{Element, Graph, Op, Type, Value},
};

static CUT: Kernel = Kernel { name: "patches/cut", source: include_str!("cut.wgsl") };

/// Squares of a picture, whose pixels are words: red in the lowest bits, then green, blue and alpha.
#[derive(Debug, Clone, PartialEq)]
pub struct Patches {
    /// Squares from left to right.
    pub columns: usize,
    /// Squares from top to bottom.
    pub rows: usize,
    /// Pixels of their sides.
    pub side: usize,
    /// What numbers from 0 to 1 become: less the second, times the first.
    pub range: (f32, f32),
}

impl Patches {
    /// Numbers of a square.
    fn numbers(&self) -> usize {
        self.side * self.side * 3
    }

    /// Pixels of the picture.
    pub fn pixels(&self) -> usize {
        self.columns * self.rows * self.side * self.side
    }
}

impl Graph {
    /// The squares of a picture, `[pixels]`: `[columns · rows, 3 · side²]` in the order channel, row, column.
    pub fn patches(&mut self, pixels: Value, cut: Patches) -> Value {
        self.apply(cut, &[pixels])
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
        vec![Type::f32([self.columns * self.rows, self.numbers()])]
    }

    fn cpu(&self, call: &CpuCall<'_>) {
        let (pixels, mut y) = (call.u32(0), call.out(0));
        let square = self.side * self.side;
        for (patch, y) in y.chunks_exact_mut(self.numbers()).enumerate() {
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
        let word = |n: usize| u32::try_from(n).expect("numbers of a picture fit 32 bits");
        let (scale, middle) = self.range;
        let (columns, side) = (word(self.columns), word(self.side));
        let cut = Dispatch::new(&CUT)
            .params(&Params { len: word(len), columns, side, scale, middle })
            .read(BufferRef::Input(0))
            .write(BufferRef::Output(0));
        vec![cut.grid_over(len.div_ceil(256))]
    }
}

/// A colour's byte with so much alpha, on white, rounded.
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
