//! Vision without a tower, as in the 12B model: each cell of pixels goes through norms and matmuls and is one soft token.

use rullama_engine::graph::{Type, Value};
use rullama_gguf::{Gguf, Optional};

use super::{
    Grid, VisionInputs,
    config::{CHANNELS, PROJECTOR},
    tower::patches,
};
use crate::{
    build::Build,
    decoder::expected::{List, size},
    encoder::EncoderGraph,
    error::ModelError,
    keys::Keys,
    tensors::{Catalog, Expected},
};

const KIND: &str = "gemma4uv";
const PIXELS: &str = "v.patch_embd";
const SHAPE: &str = "patch_size and the other tensors";
/// Epsilons of the layer norms and of the final RMS norm.
const LAYER_EPS: f32 = 1e-5;
const RMS_EPS: f32 = 1e-6;

/// Configuration of a vision encoder without a tower.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectVision {
    /// Cell side in pixels.
    pub cell: usize,
    /// Hidden size.
    pub width: usize,
    /// Number of learned position embeddings along each axis.
    pub positions: usize,
    /// Width of a soft token.
    pub out: usize,
    /// Whether the file stores the patch embedding as a 4-D convolution kernel.
    convolution: bool,
}

impl DirectVision {
    /// Reads and checks the keys of a file; `None` if it has a tower or no vision encoder.
    ///
    /// # Errors
    /// If keys or tensors are missing or impossible.
    pub fn of_file(gguf: &Gguf) -> Result<Option<Self>, ModelError> {
        let prefix = match gguf.str("general.architecture")? {
            "clip" => "clip.vision",
            _ => "gemma4.vision",
        };
        let keys = Keys { gguf, prefix };
        let declared = gguf.str("clip.vision.projector_type").optional()? == Some(KIND);
        if !declared && gguf.tensor("v.patch_norm.1.weight").is_none() {
            return Ok(None);
        }
        let patch = keys.positive("patch_size")?;
        let cell = patch * keys.optional("projector.scale_factor")?.unwrap_or(3);
        if !(1..=256).contains(&cell) {
            return Err(keys.bad("patch_size", &patch, "not a supported patch size"));
        }
        let pixels = format!("{PIXELS}.weight");
        Ok(Some(Self {
            cell,
            width: size(gguf, "v.patch_norm.2.weight", 0)?,
            positions: size(gguf, "v.position_embd.weight", 1)?,
            out: size(gguf, PROJECTOR, 1)?,
            convolution: gguf.tensor(&pixels).is_some_and(|tensor| tensor.dims().len() == 4),
        }))
    }

    /// Values per cell.
    pub fn cell_values(&self) -> usize {
        self.cell * self.cell * CHANNELS
    }

    /// All tensors the encoder uses.
    pub fn expected(&self) -> Vec<Expected> {
        let mut list = List(Vec::new());
        let (values, width) = (self.cell_values(), self.width);
        let pixels = format!("{PIXELS}.weight");
        match self.convolution {
            true => list.add(&pixels, &[width, CHANNELS, self.cell, self.cell], SHAPE),
            false => list.add(&pixels, &[width, values], SHAPE),
        }
        list.add(&format!("{PIXELS}.bias"), &[width], SHAPE);
        for (norm, length) in [(1, values), (2, width), (3, width)] {
            list.add(&format!("v.patch_norm.{norm}.weight"), &[length], SHAPE);
            list.add(&format!("v.patch_norm.{norm}.bias"), &[length], SHAPE);
        }
        list.add(PROJECTOR, &[self.out, width], SHAPE);
        list.0
    }
}

/// Builds the graph for images of one grid of cells.
///
/// # Panics
/// If the catalogue does not match the configuration.
pub fn direct(config: &DirectVision, catalog: &Catalog, grid: Grid) -> EncoderGraph {
    let n = grid.patches();
    let mut b = Build::new(catalog, RMS_EPS, false);
    // Pixel values stay in 0 to 1.
    let cells = patches(&mut b, grid, config.cell, (1.0, 0.0));
    let positions = b.input(VisionInputs::POSITIONS, Type::f32([n, config.width]));
    let x = norm(&mut b, cells, 1);
    let x = b.linear(x, PIXELS);
    let bias = b.tensor(&format!("{PIXELS}.bias"));
    let x = b.graph.add_row(x, bias);
    let x = norm(&mut b, x, 2);
    let x = b.graph.add(x, positions);
    let x = norm(&mut b, x, 3);
    b.tap(x, "patch_embed");
    let x = b.graph.rms_norm(x, None, RMS_EPS);
    let result = b.linear(x, "mm.input_projection");
    b.tap(result, "embeddings");
    b.graph.keep(result);
    EncoderGraph { graph: b.graph, result }
}

fn norm(b: &mut Build<'_>, x: Value, number: usize) -> Value {
    let weight = b.tensor(&format!("v.patch_norm.{number}.weight"));
    let bias = b.tensor(&format!("v.patch_norm.{number}.bias"));
    b.graph.layer_norm(x, weight, Some(bias), LAYER_EPS)
}
