//! How much memory this process takes on the host, where the system tells.

/// Bytes of its own that lie in memory now: pages of mapped files, which the system takes back when it needs them, are not counted.
pub(crate) fn own() -> Option<u64> {
    of_status("RssAnon:")
}

/// Bytes of mapped files that lie in memory now.
pub(crate) fn mapped() -> Option<u64> {
    of_status("RssFile:")
}

/// A line of Linux's summary of this process; other systems have no such file.
fn of_status(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}
