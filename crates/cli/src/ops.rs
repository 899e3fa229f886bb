//! `rullama ops`: the op suite on this machine's GPUs.

mod bench;
mod support;
mod test;

use anyhow::{Result, bail};
use clap::{Args as Group, Subcommand};
use rullama_engine::{
    gpu::Gpu,
    suite::{Case, cases, feature_levels},
};

use crate::quiet::quietly;

#[derive(Debug, Subcommand)]
pub(crate) enum OpsCommand {
    /// Check every kernel against its CPU reference
    Test(OpsArgs),
    /// Benchmark kernels at the shapes of real models
    Bench(BenchArgs),
    /// Show the GPUs' features and the kernels chosen for them
    Support(OpsArgs),
}

#[derive(Debug, Group)]
pub(crate) struct OpsArgs {
    /// Only rows whose operation and case (for support: operation and format) contain this text
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    filter: String,
    /// Only this GPU, numbered from 0
    #[arg(long, value_name = "N")]
    device: Option<usize>,
    /// Only this feature level: all, "no matrix units", "no f16" or floor; a GPU can emulate lower ones
    #[arg(long, value_name = "NAME")]
    feature_level: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Group)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    ops: OpsArgs,
    /// Also time the small cases
    #[arg(long)]
    all: bool,
}

impl OpsCommand {
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Test(args) | Self::Support(args) => args.json,
            Self::Bench(args) => args.ops.json,
        }
    }
}

pub(crate) fn ops(command: &OpsCommand) -> Result<()> {
    pollster::block_on(async {
        match command {
            OpsCommand::Test(args) => test::test(args).await,
            OpsCommand::Bench(args) => bench::bench(args).await,
            OpsCommand::Support(args) => support::support(args).await,
        }
    })
}

/// The GPU at the feature level of this name.
pub(crate) fn at_level(gpu: &Gpu, wanted: &str) -> Result<(&'static str, Gpu)> {
    let mut levels = feature_levels(gpu);
    let Some(at) = levels.iter().position(|(name, _)| *name == wanted) else {
        let known: Vec<&str> = levels.iter().map(|(name, _)| *name).collect();
        bail!("{} cannot emulate `{wanted}`; choose from: {}", gpu.name(), known.join(", "));
    };
    Ok(levels.swap_remove(at))
}

impl OpsArgs {
    /// The selected GPUs.
    fn gpus(&self) -> Result<Vec<Gpu>> {
        let mut gpus = quietly(|| pollster::block_on(Gpu::all()))?;
        if let Some(wanted) = self.device {
            if wanted >= gpus.len() {
                bail!("no GPU {wanted}; this machine has {}, numbered from 0", gpus.len());
            }
            gpus = vec![gpus.swap_remove(wanted)];
        }
        if gpus.is_empty() {
            bail!("no GPU found; update the GPU driver");
        }
        Ok(gpus)
    }

    /// A GPU at the selected feature levels.
    fn levels(&self, gpu: &Gpu) -> Result<Vec<(&'static str, Gpu)>> {
        match &self.feature_level {
            Some(wanted) => Ok(vec![at_level(gpu, wanted)?]),
            None => Ok(feature_levels(gpu)),
        }
    }

    /// The selected cases.
    fn cases(&self, wanted: impl Fn(&Case) -> bool) -> Result<Vec<Case>> {
        let matches = |case: &Case| format!("{} {}", case.op, case.name).contains(&self.filter);
        let cases: Vec<Case> =
            cases().into_iter().filter(|case| wanted(case) && matches(case)).collect();
        if cases.is_empty() {
            bail!("no case matches `{}`", self.filter);
        }
        Ok(cases)
    }
}
