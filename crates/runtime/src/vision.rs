//! Eyes: a vision tower on a device. Pictures in, rows in the decoder's space out.

use std::rc::Rc;

use rullama_engine::{
    cpu::Data,
    executor::{Device, Weights},
    graph::Value,
};
use rullama_gguf::Gguf;
use rullama_media::{
    MediaError,
    picture::{Budget, Picture},
};
use rullama_models::{
    Catalog, ModelError,
    gemma4::{
        Clamps,
        vision::{Grid, Tower, VisionConfig, VisionInputs, rope, tower},
    },
};

use crate::{
    error::RuntimeError,
    session::{Tap, keep_tapped, tap},
    tower::{Inputs, SoftTokens, clamps, run, weights},
};

/// The learned numbers of positions; rows of them are fetched as pictures need them.
const POSITIONS: &str = "v.position_embd.weight";
/// Ollama's files may keep all limits in one tensor.
const PACKED: &str = "v.clamp_data";

/// How large a picture becomes before the tower sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// Stretched to fill so many soft tokens.
    Fill(Budget),
    /// As it is; its sides must be multiples of a soft token's.
    Native,
}

impl Default for Sight {
    fn default() -> Self {
        Self::Fill(Budget::default())
    }
}

/// A vision tower whose weights are on a device.
#[derive(Debug)]
pub struct Vision {
    gguf: Rc<Gguf>,
    device: Device,
    config: VisionConfig,
    catalog: Catalog,
    clamps: Clamps,
    weights: Weights,
}

impl Vision {
    /// Loads the tower of a projector file, or of a model with its towers inside; `None` if there is none.
    ///
    /// # Errors
    /// If the tower is broken, makes rows of another width than the decoder reads, or does not fit the device.
    pub async fn load(
        gguf: Rc<Gguf>,
        device: Device,
        width: usize,
    ) -> Result<Option<Self>, RuntimeError> {
        let Some(config) = VisionConfig::of_file(&gguf)? else { return Ok(None) };
        if config.out != width {
            return Err(RuntimeError::OtherTower { tower: config.out, model: width });
        }
        let catalog = Catalog::of_file(&gguf, &config.expected())?;
        let clamps = clamps(&gguf, &config.products(), Some(PACKED)).await?;
        let grid = Grid { columns: config.pool, rows: config.pool };
        let list = tower(&config, &catalog, &clamps, grid).graph;
        let weights = weights(&gguf, &device, &list).await?;
        Ok(Some(Self { gguf, device, config, catalog, clamps, weights }))
    }

    /// What the file says.
    pub fn config(&self) -> &VisionConfig {
        &self.config
    }

    /// Bytes on the GPU.
    pub fn gpu_bytes(&self) -> u64 {
        self.weights.gpu_bytes()
    }

    /// The soft tokens of a picture.
    ///
    /// # Errors
    /// If the picture is too long for the tower, or the device fails.
    pub async fn see(&self, picture: &Picture, sight: Sight) -> Result<SoftTokens, RuntimeError> {
        let (list, inputs) = self.prepare(picture, sight).await?;
        let result = list.result;
        let mut data = self.run(list, inputs, &[result]).await?;
        let values = data.pop().map_or(Vec::new(), |data| data.f32().to_vec());
        Ok(SoftTokens { count: values.len() / self.config.out, values })
    }

    /// Every named value on the way to the soft tokens.
    ///
    /// # Errors
    /// As [`Self::see`].
    pub async fn trace(&self, picture: &Picture, sight: Sight) -> Result<Vec<Tap>, RuntimeError> {
        let (mut list, inputs) = self.prepare(picture, sight).await?;
        let values = keep_tapped(&mut list.graph);
        let names: Vec<_> = values.iter().map(|value| list.graph.info(*value).clone()).collect();
        let data = self.run(list, inputs, &values).await?;
        Ok(names.iter().zip(data).map(|(info, data)| tap(info, data)).collect())
    }

    /// The list for a picture, and what the host writes.
    async fn prepare(
        &self,
        picture: &Picture,
        sight: Sight,
    ) -> Result<(Tower, Inputs), RuntimeError> {
        let picture = match sight {
            Sight::Fill(budget) => picture.fill(budget),
            Sight::Native => picture.clone(),
        };
        let side = self.config.patch;
        let cell = (side * self.config.pool) as u32;
        let size = picture.size();
        if !size.width.is_multiple_of(cell) || !size.height.is_multiple_of(cell) {
            let (width, height) = (size.width, size.height);
            return Err(MediaError::NotWhole { width, height, side: cell }.into());
        }
        let patches = picture.patches(side as u32)?;
        let grid = Grid { columns: patches.columns as usize, rows: patches.rows as usize };
        let longest = grid.columns.max(grid.rows);
        if longest > self.config.positions {
            return Err(RuntimeError::PictureTooLong {
                patches: longest,
                most: self.config.positions,
            });
        }
        let inputs = vec![
            (VisionInputs::PATCHES, by_channel(&patches.values, side)),
            (VisionInputs::POSITIONS, self.positions(grid).await?),
            (VisionInputs::ROPE, rope(grid, self.config.head())),
        ];
        Ok((tower(&self.config, &self.catalog, &self.clamps, grid), inputs))
    }

    /// The learned numbers of each patch's column and row, added up.
    async fn positions(&self, grid: Grid) -> Result<Vec<f32>, RuntimeError> {
        let missing = || ModelError::MissingTensors { names: vec![POSITIONS.into()] };
        let tensor = self.gguf.tensor(POSITIONS).ok_or_else(missing)?;
        let (width, rows) = (self.config.width, self.config.positions as u64);
        if tensor.dims() != [width as u64, rows, 2] {
            let (found, wanted) = (format!("{:?}", tensor.dims()), format!("[{width}, {rows}, 2]"));
            let (name, keys) = (POSITIONS.into(), "embedding_length");
            return Err(ModelError::WrongShape { name, found, wanted, keys }.into());
        }
        let columns = self.gguf.rows_f32(tensor, 0..grid.columns as u64).await?;
        let rows = self.gguf.rows_f32(tensor, rows..rows + grid.rows as u64).await?;
        let patch = |index: usize| {
            let column = &columns[index % grid.columns * width..][..width];
            let row = &rows[index / grid.columns * width..][..width];
            column.iter().zip(row).map(|(a, b)| a + b).collect::<Vec<_>>()
        };
        Ok((0..grid.patches()).flat_map(patch).collect())
    }

    async fn run(
        &self,
        list: Tower,
        inputs: Inputs,
        values: &[Value],
    ) -> Result<Vec<Data>, RuntimeError> {
        let count = inputs[0].1.len() / self.config.patch_numbers();
        run(list.graph, &self.weights, &self.device, inputs, (count, values)).await
    }
}

/// Patches from −1 to 1, each in the order channel, row, column, as files keep the first product.
fn by_channel(values: &[f32], side: usize) -> Vec<f32> {
    let pixels = side * side;
    let turned = values.chunks_exact(pixels * 3).flat_map(|patch| {
        (0..pixels * 3).map(move |i| 2.0 * (patch[i % pixels * 3 + i / pixels] - 0.5))
    });
    turned.collect()
}
