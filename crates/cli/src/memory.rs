//! Host memory of this process, on Linux.

/// Resident bytes without pages of mapped files, which the system can reclaim.
pub(crate) fn own() -> Option<u64> {
    of_status("RssAnon:")
}

/// Resident bytes of mapped files.
pub(crate) fn mapped() -> Option<u64> {
    of_status("RssFile:")
}

/// A line of `/proc/self/status`; other systems have no such file.
fn of_status(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}
