//! Ctrl-C: the first one asks for an end, a second one before that is heard ends the program.

use std::{
    ops::ControlFlow,
    sync::atomic::{AtomicBool, Ordering},
};

use anyhow::{Context, Result};

/// What shells say of a program that was interrupted.
pub(crate) const EXIT_CODE: u8 = 130;

/// Somebody pressed Ctrl-C, and that ended it.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

static PRESSED: AtomicBool = AtomicBool::new(false);

/// From now on Ctrl-C is noted instead of ending the program.
pub(crate) fn watch() -> Result<()> {
    ctrlc::set_handler(|| {
        if PRESSED.swap(true, Ordering::Relaxed) {
            std::process::exit(EXIT_CODE.into());
        }
    })
    .context("Ctrl-C cannot be watched")
}

/// Whether Ctrl-C was pressed since the last [`clear`].
pub(crate) fn pressed() -> bool {
    PRESSED.load(Ordering::Relaxed)
}

/// Whether work that asks now shall go on.
pub(crate) fn flow() -> ControlFlow<()> {
    if pressed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Forgets an earlier Ctrl-C.
pub(crate) fn clear() {
    PRESSED.store(false, Ordering::Relaxed);
}
