//! Progress and final report of a run.

use std::{io::IsTerminal, time::Instant};

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use rullama_train::{Event, Run};
use serde_json::json;

use super::{files::Folder, plot};
use crate::output::{bytes, note, print, print_json};

/// Progress on standard error.
pub(super) struct Screen {
    bar: ProgressBar,
    start: Instant,
}

impl Screen {
    pub(super) fn new(steps: u32, run: &Run) -> Self {
        let (trainer, need) = (run.trainer(), run.trainer().need());
        if std::io::stderr().is_terminal() {
            note(&format!(
                "{} sequences, {} trainable parameters, {} ({} model, {} adapter, {} activations; {} sequences in a pass, {} layers recomputed)",
                run.sequences().len(),
                trainer.parameters(),
                bytes(need.total()),
                bytes(need.model),
                bytes(need.adapter),
                bytes(need.work),
                need.micro_batch,
                need.recomputed,
            ));
        }
        let style =
            ProgressStyle::with_template("{wide_bar} {pos}/{len} {msg} {elapsed} ETA {eta}");
        let bar = if std::io::stderr().is_terminal() {
            ProgressBar::new(steps.into())
        } else {
            ProgressBar::hidden()
        };
        bar.set_position(trainer.steps().into());
        let bar = match style {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        };
        Self { bar, start: Instant::now() }
    }

    /// Seconds since the run started.
    pub(super) fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    pub(super) fn show(&mut self, event: &Event, run: &Run) {
        match event {
            Event::Step(report) => {
                self.bar.set_position(u64::from(report.step) + 1);
                let evaluation = run.evaluations().last();
                let evaluation =
                    evaluation.map_or(String::new(), |(_, loss)| format!(" eval {loss:.4}"));
                self.bar.set_message(format!(
                    "loss {:.4}{evaluation} lr {:.1e}",
                    report.loss, report.rate
                ));
            }
            Event::Evaluated { .. } | Event::Done { .. } => {}
        }
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunEnd {
    /// Number of steps.
    pub(super) step: u32,
    /// The last loss.
    pub(super) loss: f64,
    /// Whether it stopped early because evaluations did not improve.
    pub(super) early: bool,
}

/// Reports the end of a run.
pub(super) fn report(
    run: &Run,
    RunEnd { step, loss, early }: RunEnd,
    folder: &Folder,
    as_json: bool,
) -> Result<()> {
    let first = run.losses().first().copied();
    if as_json {
        return print_json(&json!({
            "steps": step,
            "first_loss": first,
            "loss": loss,
            "early": early,
            "evaluations": run.evaluations(),
            "gpu_bytes": run.trainer().gpu_bytes(),
            "layers_computed_twice": run.trainer().need().recomputed,
            "out": folder.file("").display().to_string(),
        }));
    }
    let mut text = plot::text(run.losses());
    let from = first.map_or(String::new(), |first| format!(" (from {first:.4})"));
    let ended = if early { ", stopped early: evaluation did not improve" } else { "" };
    text += &format!("{step} steps, loss {loss:.4}{from}{ended}\n");
    if let Some((_, loss)) = run.evaluations().last() {
        text += &format!("evaluation loss {loss:.4}\n");
    }
    text += &format!("adapter, log and plot are in {}\n", folder.file("").display());
    print(&text)
}
