//! Ctrl-C. A command that can stop in an orderly way watches for the first one; a second one, or the first in any other
//! command, ends the process at once.

use std::{
    ops::ControlFlow,
    sync::atomic::{AtomicBool, Ordering},
};

use anyhow::{Context, Result};

use crate::output_file::remove_parts;

/// The exit code shells use for an interrupted program.
pub(crate) const EXIT_CODE: u8 = 130;

/// The error of a command ended by Ctrl-C.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Ctrl-C was pressed.
static PRESSED: AtomicBool = AtomicBool::new(false);
/// The next Ctrl-C ends the process at once: until a command calls [`watch`], and after it was pressed once.
static AT_ONCE: AtomicBool = AtomicBool::new(true);

/// Handles Ctrl-C from the start of the program. Until a command calls [`watch`], it ends the process with its exit code, and
/// without exit handlers: those of GPU drivers crash while other threads use the device.
pub(crate) fn install() -> Result<()> {
    ctrlc::set_handler(|| {
        if AT_ONCE.swap(true, Ordering::SeqCst) {
            remove_parts();
            signal_hook::low_level::exit(EXIT_CODE.into());
        }
        PRESSED.store(true, Ordering::SeqCst);
    })
    .context("cannot handle Ctrl-C")
}

/// From now on the first Ctrl-C is recorded instead of ending the program; a second one ends it at once.
pub(crate) fn watch() {
    AT_ONCE.store(pressed(), Ordering::SeqCst);
}

/// Whether Ctrl-C was pressed since the last [`clear`].
pub(crate) fn pressed() -> bool {
    PRESSED.load(Ordering::SeqCst)
}

/// Fails with [`Interrupted`] if Ctrl-C was pressed.
pub(crate) fn check() -> Result<()> {
    if pressed() { Err(Interrupted.into()) } else { Ok(()) }
}

/// Break if Ctrl-C was pressed.
pub(crate) fn flow() -> ControlFlow<()> {
    if pressed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Clears an earlier Ctrl-C.
pub(crate) fn clear() {
    AT_ONCE.store(false, Ordering::SeqCst);
    PRESSED.store(false, Ordering::SeqCst);
}
