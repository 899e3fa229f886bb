//! Background tasks: many steps of `cargo xtask test` are single-threaded and would leave a core idle.

use std::{
    fs::{self, File},
    path::PathBuf,
    process::{Child, Command},
};

use anyhow::{Context, Result, bail};

use crate::command::{root, say, target};

/// A running background task, killed on drop.
pub(crate) struct Background {
    task: &'static str,
    child: Child,
    log: PathBuf,
}

impl Background {
    /// Starts `cargo xtask TASK`; the output is printed by [`Self::finish`].
    pub(crate) fn start(task: &'static str) -> Result<Self> {
        say(&format!("\nIn the background: cargo xtask {task}"));
        let log = target().join(format!("{task}.log"));
        let file =
            File::create(&log).with_context(|| format!("{} cannot be written", log.display()))?;
        let child = Command::new(std::env::current_exe()?)
            .arg(task)
            .current_dir(root())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()?;
        Ok(Self { task, child, log })
    }

    /// Waits for the task to end and prints its output.
    pub(crate) fn finish(mut self) -> Result<()> {
        let status = self.child.wait()?;
        say(&fs::read_to_string(&self.log)?);
        if !status.success() {
            bail!("`cargo xtask {}` failed ({status})", self.task);
        }
        Ok(())
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // The task may have ended already.
        let _ = self.child.kill();
    }
}
