//! Ctrl-C, on Unix also SIGTERM, and on Linux a closed terminal: what ends a server that runs in the foreground.

use std::io;

/// The signals that ask for an end. They are noted from the moment this exists.
pub struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    /// A closed terminal, unless it is to be ignored (`nohup`).
    #[cfg(unix)]
    hangup: Option<tokio::signal::unix::Signal>,
    #[cfg(windows)]
    interrupt: tokio::signal::windows::CtrlC,
}

impl std::fmt::Debug for Signals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Signals")
    }
}

impl Signals {
    /// Starts watching; must be called inside a runtime.
    #[cfg(unix)]
    pub fn watch() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: may_hang_up().then(|| signal(SignalKind::hangup())).transpose()?,
        })
    }

    /// Starts watching; must be called inside a runtime.
    #[cfg(windows)]
    pub fn watch() -> io::Result<Self> {
        Ok(Self { interrupt: tokio::signal::windows::ctrl_c()? })
    }

    /// Waits for the first of them.
    pub async fn wait(mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            () = hung_up(self.hangup.as_mut()) => {}
        }
        #[cfg(windows)]
        self.interrupt.recv().await;
    }
}

/// Waits for a closed terminal, or for ever where that is ignored.
#[cfg(unix)]
async fn hung_up(hangup: Option<&mut tokio::signal::unix::Signal>) {
    match hangup {
        Some(signal) => _ = signal.recv().await,
        None => std::future::pending().await,
    }
}

/// Whether a closed terminal is to end this process. To watch a signal is to no longer ignore it, so this must be known first; only Linux tells.
#[cfg(unix)]
fn may_hang_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignored(&status).is_some_and(|signals| signals & 1 == 0)
}

/// The signals that a process ignores, SIGHUP in the lowest bit.
#[cfg(unix)]
fn ignored(status: &str) -> Option<u64> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

#[cfg(all(test, unix))]
mod tests {
    use super::ignored;

    #[test]
    fn ignored_signals() {
        assert_eq!(ignored("Name:\tx\nSigIgn:\t0000000000001001\n"), Some(0x1001));
        assert_eq!(ignored("SigIgn:\tnonsense"), None);
        assert_eq!(ignored(""), None);
    }
}
