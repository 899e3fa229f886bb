//! The vision encoder: Gemma 4's transformer over patches or its single projection, or Gemma 3's SigLIP.

use std::{borrow::Cow, rc::Rc};

use rullama_engine::{executor::Device, gpu::profile::Table, graph::Cost};
use rullama_gguf::Gguf;
use rullama_media::{
    MediaError,
    image::{Budget, Filter, Image, Size},
};
use rullama_models::{
    Catalog, EncoderGraph, Expected, ModelError,
    gemma4::{
        Clamps,
        vision::{DirectVision, Grid, VisionConfig, VisionInputs, direct, rope, tower},
    },
    siglip::{self, SiglipConfig},
};

use super::encoder::{Architecture, Encoder, Input, Inputs, SoftTokens};
use crate::{error::RuntimeError, session::Tap};

/// The learned position embeddings; rows are read from the file when needed.
const POSITIONS: &str = "v.position_embd.weight";

/// Columns and rows of soft tokens that fill the default budget.
const USUAL: (usize, usize) = (20, 14);

/// Size of an image before it is encoded. Encoders with one input size (Gemma 3's) resize every image to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageSize {
    /// Resized to fill a budget of soft tokens.
    Fill(Budget),
    /// Not resized; its sides must be multiples of a soft token's.
    Native,
}

impl Default for ImageSize {
    fn default() -> Self {
        Self::Fill(Budget::default())
    }
}

/// Architecture of a vision encoder.
#[derive(Debug)]
enum VisionArchitecture {
    Tower(Box<VisionConfig>, Clamps),
    Direct(DirectVision),
    Siglip(Box<SiglipConfig>),
}

/// A vision encoder whose weights are on a device.
#[derive(Debug)]
pub struct VisionEncoder(Encoder<VisionArchitecture>);

impl VisionEncoder {
    /// Loads the vision encoder of a projector file, or of a model file that contains it; `None` if there is none.
    ///
    /// # Errors
    /// If it is broken, its output width differs from the decoder's, or it does not fit the device.
    pub async fn load(
        gguf: Rc<Gguf>,
        device: Device,
        width: usize,
    ) -> Result<Option<Self>, RuntimeError> {
        Ok(Encoder::load(gguf, device, width).await?.map(Self))
    }

    /// Estimated GPU bytes of a file's vision encoder for an image of the usual size, from its header; 0 if there is none.
    ///
    /// # Errors
    /// If it is broken.
    pub fn memory_of_file(gguf: &Gguf) -> Result<u64, RuntimeError> {
        Encoder::<VisionArchitecture>::memory_of_file(gguf)
    }

    /// Bytes on the GPU.
    pub fn gpu_bytes(&self) -> u64 {
        self.0.gpu_bytes()
    }

    /// The soft tokens of an image.
    ///
    /// # Errors
    /// If the image has too many patches for the encoder, or the device fails.
    pub async fn encode(&self, image: &Image, size: ImageSize) -> Result<SoftTokens, RuntimeError> {
        let (grid, inputs) = self.0.architecture.prepare(image, size)?;
        let values = self.0.encode(grid, inputs).await?;
        Ok(SoftTokens { count: values.len() / self.0.architecture.out(), values })
    }

    /// Every tapped value.
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub async fn trace(&self, image: &Image, size: ImageSize) -> Result<Vec<Tap>, RuntimeError> {
        let (grid, inputs) = self.0.architecture.prepare(image, size)?;
        self.0.trace(grid, inputs).await
    }

    /// Cost of an image, and a profile if the device has timestamps.
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub async fn profile(
        &self,
        image: &Image,
        size: ImageSize,
    ) -> Result<(Cost, Option<Table>), RuntimeError> {
        let (grid, _) = self.0.architecture.prepare(image, size)?;
        self.0.profile(grid).await
    }
}

/// Sizes that all architectures have.
struct Shape {
    /// Patch side in pixels.
    side: usize,
    /// Patches per soft token along each axis.
    pool: usize,
    positions: usize,
    width: usize,
    out: usize,
}

impl VisionArchitecture {
    fn shape(&self) -> Shape {
        match self {
            Self::Tower(config, _) => {
                let VisionConfig { patch: side, pool, positions, width, out, .. } = **config;
                Shape { side, pool, positions, width, out }
            }
            Self::Direct(config) => {
                let DirectVision { cell: side, positions, width, out, .. } = *config;
                Shape { side, pool: 1, positions, width, out }
            }
            Self::Siglip(config) => {
                let SiglipConfig { patch: side, pool, width, out, .. } = **config;
                Shape { side, pool, positions: config.grid().columns, width, out }
            }
        }
    }

    /// The image in the size that it is encoded in; it is not copied if it has that size.
    fn resized<'a>(&self, image: &'a Image, size: ImageSize) -> Cow<'a, Image> {
        match (self, size) {
            (Self::Siglip(config), _) => {
                let side = config.side as u32;
                let size = Size { width: side, height: side };
                match image.size() == size {
                    true => Cow::Borrowed(image),
                    false => Cow::Owned(image.resize(size, Filter::Bilinear)),
                }
            }
            (_, ImageSize::Fill(budget)) if image.size().target(budget) != image.size() => {
                Cow::Owned(image.fill(budget))
            }
            (_, ImageSize::Fill(_) | ImageSize::Native) => Cow::Borrowed(image),
        }
    }

    /// The grid of patches of an image, and its pixels.
    fn prepare(&self, image: &Image, size: ImageSize) -> Result<(Grid, Inputs), RuntimeError> {
        let image = self.resized(image, size);
        let Shape { side, pool, positions, .. } = self.shape();
        let cell = (side * pool) as u32;
        let size = image.size();
        if !size.width.is_multiple_of(cell) || !size.height.is_multiple_of(cell) {
            let (width, height) = (size.width, size.height);
            return Err(MediaError::NotWhole { width, height, side: cell }.into());
        }
        let grid = Grid { columns: size.width as usize / side, rows: size.height as usize / side };
        let longest = grid.columns.max(grid.rows);
        if longest > positions {
            return Err(RuntimeError::ImageTooLong { patches: longest, most: positions });
        }
        let pixels = Input::Words(image.rgba().into_owned());
        Ok((grid, vec![(VisionInputs::PIXELS, pixels)]))
    }

    /// What is added to each patch: the position embeddings of its column and row, or its own one.
    async fn positions(&self, gguf: &Gguf, grid: Grid) -> Result<Vec<f32>, RuntimeError> {
        if let Self::Siglip(config) = self {
            return learned_positions(config, gguf).await;
        }
        let missing = || ModelError::MissingTensors { names: vec![POSITIONS.into()] };
        let tensor = gguf.tensor(POSITIONS).ok_or_else(missing)?;
        let Shape { width, positions, .. } = self.shape();
        let rows = positions as u64;
        if tensor.dims() != [width as u64, rows, 2] {
            let (found, wanted) = (format!("{:?}", tensor.dims()), format!("[{width}, {rows}, 2]"));
            let (name, keys) = (POSITIONS.into(), "embedding_length");
            return Err(ModelError::WrongShape { name, found, wanted, keys }.into());
        }
        let columns = gguf.rows_f32(tensor, 0..grid.columns as u64).await?;
        let rows = gguf.rows_f32(tensor, rows..rows + grid.rows as u64).await?;
        let mut sums = Vec::with_capacity(grid.patches() * width);
        for row in rows.chunks_exact(width) {
            for column in columns.chunks_exact(width) {
                sums.extend(column.iter().zip(row).map(|(a, b)| a + b));
            }
        }
        Ok(sums)
    }
}

impl Architecture for VisionArchitecture {
    type Size = Grid;
    const PACKED_CLAMPS: Option<&'static str> = Some("v.clamp_data");

    fn of_file(gguf: &Gguf) -> Result<Option<Self>, RuntimeError> {
        if let Some(siglip) = SiglipConfig::of_file(gguf)? {
            return Ok(Some(Self::Siglip(Box::new(siglip))));
        }
        if let Some(direct) = DirectVision::of_file(gguf)? {
            return Ok(Some(Self::Direct(direct)));
        }
        let tower = VisionConfig::of_file(gguf)?;
        Ok(tower.map(|config| Self::Tower(Box::new(config), Clamps::default())))
    }

    fn clamped(&mut self) -> Option<(Vec<String>, &mut Clamps)> {
        match self {
            Self::Tower(config, clamps) => Some((config.clamped_linears(), clamps)),
            Self::Direct(_) | Self::Siglip(_) => None,
        }
    }

    fn out(&self) -> usize {
        self.shape().out
    }

    fn expected(&self) -> Vec<Expected> {
        match self {
            Self::Tower(config, _) => config.expected(),
            Self::Direct(config) => config.expected(),
            Self::Siglip(config) => config.expected(),
        }
    }

    fn smallest(&self) -> Grid {
        if let Self::Siglip(config) = self {
            return config.grid();
        }
        let pool = self.shape().pool;
        Grid { columns: pool, rows: pool }
    }

    fn usual(&self) -> Grid {
        if let Self::Siglip(config) = self {
            return config.grid();
        }
        let pool = self.shape().pool;
        Grid { columns: USUAL.0 * pool, rows: USUAL.1 * pool }
    }

    fn graph(&self, catalog: &Catalog, grid: Grid, most_bytes: u64) -> EncoderGraph {
        match self {
            Self::Tower(config, clamps) => tower(config, catalog, clamps, grid, most_bytes),
            Self::Direct(config) => direct(config, catalog, grid),
            Self::Siglip(config) => siglip::encoder(config, catalog),
        }
    }

    fn rows(grid: Grid) -> usize {
        grid.patches()
    }

    async fn constants(&self, gguf: &Gguf, grid: Grid) -> Result<Inputs, RuntimeError> {
        let positions = self.positions(gguf, grid).await?;
        let mut inputs = vec![(VisionInputs::POSITIONS, Input::F32(positions))];
        let table = match self {
            Self::Tower(config, _) => rope(grid, config.head()),
            Self::Direct(_) => return Ok(inputs),
            Self::Siglip(config) => {
                // Cosines and sines of no rotation, scaled.
                let pair = [siglip::score_scale(config.head()), 0.0];
                pair.repeat(grid.patches() * config.head() / 2)
            }
        };
        inputs.push((VisionInputs::ROPE, Input::F32(table)));
        Ok(inputs)
    }
}

/// The learned embedding of each patch's position, with the bias of the patch embedding added.
async fn learned_positions(config: &SiglipConfig, gguf: &Gguf) -> Result<Vec<f32>, RuntimeError> {
    let bias = config.patch_bias();
    let [positions, bias] = [config.positions(), &bias].map(|name| {
        gguf.tensor(name).ok_or_else(|| ModelError::MissingTensors { names: vec![name.into()] })
    });
    let (positions, bias) = (positions?, bias?);
    let mut sums = gguf.rows_f32(positions, 0..positions.rows()).await?;
    let bias = gguf.rows_f32(bias, 0..bias.rows()).await?;
    for row in sums.chunks_exact_mut(config.width) {
        row.iter_mut().zip(&bias).for_each(|(sum, bias)| *sum += bias);
    }
    Ok(sums)
}
