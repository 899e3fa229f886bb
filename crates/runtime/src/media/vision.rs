//! Eyes: a vision tower on a device, or a model's way without one. Pictures in, rows in the decoder's space out.

use std::{borrow::Cow, rc::Rc};

use rullama_engine::{
    cpu::Data,
    executor::{Device, Weights},
    gpu::profile::Table,
    graph::Cost,
};
use rullama_gguf::Gguf;
use rullama_media::{
    MediaError,
    picture::{Budget, Picture},
};
use rullama_models::{
    Catalog, Expected, ModelError,
    gemma4::{
        Clamps,
        vision::{DirectVision, Grid, Tower, VisionConfig, VisionInputs, direct, rope, tower},
    },
};

use crate::{
    error::RuntimeError,
    session::{Tap, keep_tapped, tap},
    tower::{Inputs, Last, Ready, SoftTokens, bytes_with_weights, clamps, weights},
};

/// The learned numbers of positions; rows of them are fetched as pictures need them.
const POSITIONS: &str = "v.position_embd.weight";
/// Ollama's files may keep all limits in one tensor.
const PACKED: &str = "v.clamp_data";

/// Soft tokens beside and above each other that fill the usual budget.
const USUAL: (usize, usize) = (20, 14);

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

/// How a model sees.
#[derive(Debug)]
enum Form {
    Tower(Box<VisionConfig>, Clamps),
    Direct(DirectVision),
}

/// What can see, its weights on a device.
#[derive(Debug)]
pub struct Vision {
    gguf: Rc<Gguf>,
    device: Device,
    form: Form,
    catalog: Catalog,
    weights: Weights,
    last: Last<Grid>,
}

impl Vision {
    /// Loads what sees in a projector file, or in a model with its towers inside; `None` if there is nothing.
    ///
    /// # Errors
    /// If it is broken, makes rows of another width than the decoder reads, or does not fit the device.
    pub async fn load(
        gguf: Rc<Gguf>,
        device: Device,
        width: usize,
    ) -> Result<Option<Self>, RuntimeError> {
        let Some(mut form) = Form::of_file(&gguf)? else { return Ok(None) };
        if let Form::Tower(config, limits) = &mut form {
            *limits = clamps(&gguf, &config.products(), Some(PACKED)).await?;
        }
        let Shape { pool, out, .. } = form.shape();
        if out != width {
            return Err(RuntimeError::OtherTower { tower: out, model: width });
        }
        let catalog = Catalog::of_file(&gguf, &form.expected())?;
        let graph =
            form.graph(&catalog, Grid { columns: pool, rows: pool }, device.most_bytes()).graph;
        let weights = weights(&gguf, &device, graph).await?;
        Ok(Some(Self { gguf, device, form, catalog, weights, last: Last::default() }))
    }

    /// Bytes on a GPU that what sees in a file will take for a picture of the usual size, as its header tells; nothing where
    /// nothing sees.
    ///
    /// # Errors
    /// If it is broken.
    pub fn memory_of_file(gguf: &Gguf) -> Result<u64, RuntimeError> {
        let Some(form) = Form::of_file(gguf)? else { return Ok(0) };
        let catalog = Catalog::of_file(gguf, &form.expected())?;
        let pool = form.shape().pool;
        let grid = Grid { columns: USUAL.0 * pool, rows: USUAL.1 * pool };
        Ok(bytes_with_weights(&form.graph(&catalog, grid, u64::MAX).graph))
    }

    /// Bytes on the GPU.
    pub fn gpu_bytes(&self) -> u64 {
        self.weights.gpu_bytes() + self.last.gpu_bytes()
    }

    /// The soft tokens of a picture.
    ///
    /// # Errors
    /// If the picture is too long for the tower, or the device fails.
    pub async fn see(&self, picture: &Picture, sight: Sight) -> Result<SoftTokens, RuntimeError> {
        let (grid, picture) = self.prepare(picture, sight)?;
        let ready = self.ready(grid).await?;
        ready.write_words(VisionInputs::PIXELS, &picture.rgba());
        let values = ready.run(Vec::new(), grid.patches()).await?;
        Ok(SoftTokens { count: values.len() / self.form.shape().out, values })
    }

    /// Every named value on the way to the soft tokens.
    ///
    /// # Errors
    /// As [`Self::see`].
    pub async fn trace(&self, picture: &Picture, sight: Sight) -> Result<Vec<Tap>, RuntimeError> {
        let (grid, picture) = self.prepare(picture, sight)?;
        let Tower { mut graph, result } = self.graph(grid);
        let values = keep_tapped(&mut graph);
        let names: Vec<_> = values.iter().map(|value| graph.info(*value).clone()).collect();
        let ready = Ready::new(graph, result, &self.weights, &self.device).await?;
        ready.write(self.places(grid).await?);
        ready.write_words(VisionInputs::PIXELS, &picture.rgba());
        let data = ready.run_reading(Vec::new(), grid.patches(), &values).await?;
        Ok(names.iter().zip(data).map(|(info, data)| tap(info, data)).collect())
    }

    /// What a picture costs, and how long its dispatches take where the device has clocks.
    ///
    /// # Errors
    /// As [`Self::see`].
    pub async fn profile(
        &self,
        picture: &Picture,
        sight: Sight,
    ) -> Result<(Cost, Option<Table>), RuntimeError> {
        let (grid, _) = self.prepare(picture, sight)?;
        let ready = self.ready(grid).await?;
        Ok((ready.cost(grid.patches()), ready.profile(grid.patches()).await?))
    }

    /// The graph for a grid, made ready if it is not.
    async fn ready(&self, grid: Grid) -> Result<Rc<Ready>, RuntimeError> {
        if let Some(ready) = self.last.get(&grid) {
            return Ok(ready);
        }
        let Tower { graph, result } = self.graph(grid);
        let ready = Rc::new(Ready::new(graph, result, &self.weights, &self.device).await?);
        ready.write(self.places(grid).await?);
        self.last.put(grid, ready.clone());
        Ok(ready)
    }

    fn graph(&self, grid: Grid) -> Tower {
        self.form.graph(&self.catalog, grid, self.device.most_bytes())
    }

    /// How a picture is cut, and the picture as large as it is seen.
    fn prepare<'a>(
        &self,
        picture: &'a Picture,
        sight: Sight,
    ) -> Result<(Grid, Cow<'a, Picture>), RuntimeError> {
        let picture = match sight {
            // What fills its tokens already is not copied.
            Sight::Fill(budget) if picture.size().target(budget) != picture.size() => {
                Cow::Owned(picture.fill(budget))
            }
            Sight::Fill(_) | Sight::Native => Cow::Borrowed(picture),
        };
        let Shape { side, pool, positions, .. } = self.form.shape();
        let cell = (side * pool) as u32;
        let size = picture.size();
        if !size.width.is_multiple_of(cell) || !size.height.is_multiple_of(cell) {
            let (width, height) = (size.width, size.height);
            return Err(MediaError::NotWhole { width, height, side: cell }.into());
        }
        let grid = Grid { columns: size.width as usize / side, rows: size.height as usize / side };
        let longest = grid.columns.max(grid.rows);
        if longest > positions {
            return Err(RuntimeError::PictureTooLong { patches: longest, most: positions });
        }
        Ok((grid, picture))
    }

    /// What a grid's graph is told about places, whatever the picture.
    async fn places(&self, grid: Grid) -> Result<Inputs, RuntimeError> {
        let mut inputs = vec![(VisionInputs::POSITIONS, Data::F32(self.positions(grid).await?))];
        if let Form::Tower(config, _) = &self.form {
            inputs.push((VisionInputs::ROPE, Data::F32(rope(grid, config.head()))));
        }
        Ok(inputs)
    }

    /// The learned numbers of each patch's column and row, added up.
    async fn positions(&self, grid: Grid) -> Result<Vec<f32>, RuntimeError> {
        let missing = || ModelError::MissingTensors { names: vec![POSITIONS.into()] };
        let tensor = self.gguf.tensor(POSITIONS).ok_or_else(missing)?;
        let Shape { width, positions, .. } = self.form.shape();
        let rows = positions as u64;
        if tensor.dims() != [width as u64, rows, 2] {
            let (found, wanted) = (format!("{:?}", tensor.dims()), format!("[{width}, {rows}, 2]"));
            let (name, keys) = (POSITIONS.into(), "embedding_length");
            return Err(ModelError::WrongShape { name, found, wanted, keys }.into());
        }
        let columns = self.gguf.rows_f32(tensor, 0..grid.columns as u64).await?;
        let rows = self.gguf.rows_f32(tensor, rows..rows + grid.rows as u64).await?;
        let mut sums = Vec::with_capacity(grid.patches() * width);
        for row in rows.chunks_exact(width) {
            for column in columns.chunks_exact(width) {
                sums.extend(column.iter().zip(row).map(|(a, b)| a + b));
            }
        }
        Ok(sums)
    }
}

/// Sizes that both forms have.
struct Shape {
    /// Pixels of a patch's side.
    side: usize,
    /// Patches of a soft token's side.
    pool: usize,
    positions: usize,
    width: usize,
    out: usize,
}

impl Form {
    /// How the model of a file sees, without limits, which have to be read.
    fn of_file(gguf: &Gguf) -> Result<Option<Self>, RuntimeError> {
        if let Some(direct) = DirectVision::of_file(gguf)? {
            return Ok(Some(Self::Direct(direct)));
        }
        let tower = VisionConfig::of_file(gguf)?;
        Ok(tower.map(|config| Self::Tower(Box::new(config), Clamps::default())))
    }

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
        }
    }

    fn expected(&self) -> Vec<Expected> {
        match self {
            Self::Tower(config, _) => config.expected(),
            Self::Direct(config) => config.expected(),
        }
    }

    /// The graph for a grid, on a device whose kernels can reach so many bytes of a value.
    fn graph(&self, catalog: &Catalog, grid: Grid, most_bytes: u64) -> Tower {
        match self {
            Self::Tower(config, clamps) => tower(config, catalog, clamps, grid, most_bytes),
            Self::Direct(config) => direct(config, catalog, grid),
        }
    }
}
