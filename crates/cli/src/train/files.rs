//! Files of a training run: data, checkpoint, adapter, log, plot.

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    rc::Rc,
};

use anyhow::{Context, Result, bail};
use pollster::block_on;
use rullama_adapter::{Adapter, PeftFiles};
use rullama_source::FileSource;
use rullama_train::{Checkpoint, Event, Run};
use serde_json::json;

use super::plot;
use crate::output_file::{OutputFile, check, protect, write};

const CHECKPOINT: &str = "checkpoint.safetensors";
const LOSSES: &str = "loss.svg";
const REPORT: &str = "report.html";

pub(super) fn read_text(path: &Path) -> Result<String> {
    protect(path);
    let bytes = fs::read(path).with_context(|| path.display().to_string())?;
    String::from_utf8(bytes).with_context(|| format!("{} is not UTF-8 text", path.display()))
}

/// Writes a file in chunks.
fn write_pieces(path: &Path, write: impl FnOnce(&mut OutputFile) -> Result<()>) -> Result<()> {
    let mut file = OutputFile::create(path)?;
    write(&mut file).with_context(|| path.display().to_string())?;
    file.finish()
}

/// Gradients by name, as a safetensors file.
pub(super) fn write_gradients(
    path: &Path,
    gradients: &[(String, [usize; 2], Vec<f32>)],
) -> Result<()> {
    let bytes: Vec<Vec<u8>> = gradients
        .iter()
        .map(|(_, _, numbers)| numbers.iter().flat_map(|n| n.to_le_bytes()).collect())
        .collect();
    let mut views = Vec::new();
    for ((name, shape, _), bytes) in gradients.iter().zip(&bytes) {
        let view =
            safetensors::tensor::TensorView::new(safetensors::Dtype::F32, shape.to_vec(), bytes)?;
        views.push((name.clone(), view));
    }
    write(path, &safetensors::serialize(views, None)?)
}

/// The folder of a run.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn create(path: &Path) -> Result<Self> {
        if path.is_file() {
            bail!("{} is a file; --out takes a folder", path.display());
        }
        fs::create_dir_all(path).with_context(|| path.display().to_string())?;
        let folder = Self(path.to_owned());
        // Checked now instead of at the end of a long run.
        for name in [CHECKPOINT, PeftFiles::CONFIG, PeftFiles::WEIGHTS, LOSSES, REPORT] {
            let file = folder.file(name);
            check(&file).with_context(|| file.display().to_string())?;
        }
        Ok(folder)
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(super) fn checkpoint(&self) -> Result<Option<Checkpoint>> {
        let path = self.file(CHECKPOINT);
        if !path.exists() {
            return Ok(None);
        }
        Ok(Some(block_on(Checkpoint::open(Rc::new(FileSource::open(&path)?)))?))
    }

    pub(super) fn write_checkpoint(&self, run: &Run) -> Result<()> {
        write_pieces(&self.file(CHECKPOINT), |file| {
            for number in 0.. {
                let Some(piece) = block_on(run.checkpoint_piece(number))? else { break };
                file.write_all(&piece)?;
            }
            Ok(())
        })
    }

    /// Called at the end of a run.
    pub(super) fn remove_checkpoint(&self) -> Result<()> {
        let path = self.file(CHECKPOINT);
        if path.exists() {
            fs::remove_file(&path).with_context(|| path.display().to_string())?;
        }
        Ok(())
    }

    pub(super) fn write_adapter(&self, adapter: &Adapter, base: &str) -> Result<()> {
        let pieces = adapter.peft_pieces(base)?;
        write(&self.file(PeftFiles::CONFIG), pieces.config.as_bytes())?;
        write_pieces(&self.file(PeftFiles::WEIGHTS), |file| {
            pieces.weights().try_for_each(|piece| Ok(file.write_all(&piece)?))
        })
    }

    pub(super) fn write_plot(&self, run: &Run, model: &str) -> Result<()> {
        let svg = plot::svg(run.losses(), run.evaluations());
        write(&self.file(LOSSES), svg.as_bytes())?;
        write(&self.file(REPORT), plot::page(&svg, run, model).as_bytes())
    }
}

/// The loss of each step, line by line.
pub(super) struct Log(BufWriter<File>);

impl Log {
    /// Starts a log; steps of a resumed run are written again.
    pub(super) fn begin(path: &Path, run: &Run) -> Result<Self> {
        let mut start = OutputFile::create(path)?;
        for (step, loss) in (0..).zip(run.losses()) {
            let line = json!({ "step": step, "loss": loss, "lr": run.schedule().rate_of(step) });
            writeln!(start, "{line}").with_context(|| path.display().to_string())?;
        }
        Ok(Self(BufWriter::new(start.publish()?)))
    }

    pub(super) fn write(&mut self, event: &Event, seconds: f64) -> Result<()> {
        self.line(&match event {
            Event::Step(report) => json!({
                "step": report.step, "loss": report.loss, "lr": report.rate,
                "tokens": report.tokens, "targets": report.targets, "seconds": seconds,
            }),
            Event::Evaluated { step, loss, best } => {
                json!({ "step": step, "eval_loss": loss, "best": best })
            }
            Event::Done { step, loss, early } => {
                json!({ "step": step, "loss": loss, "final": true, "early": early })
            }
        })
    }

    fn line(&mut self, value: &serde_json::Value) -> Result<()> {
        writeln!(self.0, "{value}").and_then(|()| self.0.flush()).context("the log")
    }
}
