//! Tasks in the background: many steps are single-threaded and would leave a core idle.

use std::{
    fs::{self, File},
    path::PathBuf,
    process::{Child, Command},
};

use anyhow::{Context, Result, bail};

use crate::command::{root, say, target};

/// A running background task; it is killed on drop.
pub(crate) struct Beside {
    task: &'static str,
    child: Child,
    log: PathBuf,
}

impl Beside {
    /// Starts `cargo xtask TASK`; its output is shown by [`Self::finish`].
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

    /// Waits for the end and shows the output.
    pub(crate) fn finish(mut self) -> Result<()> {
        let status = self.child.wait()?;
        say(&fs::read_to_string(&self.log)?);
        if !status.success() {
            bail!("`cargo xtask {}` failed ({status})", self.task);
        }
        Ok(())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
    }
}
