//! Software GPUs, for machines without a GPU.

use std::path::{Path, PathBuf};

/// The folder of Vulkan driver manifests.
const VULKAN: &str = "/usr/share/vulkan/icd.d";
/// SwiftShader, which is part of Chromium: a second driver with other limits (4-wide subgroups, no f16).
const SWIFTSHADER: [&str; 2] =
    ["/usr/lib/chromium/vk_swiftshader_icd.json", "/usr/lib64/chromium/vk_swiftshader_icd.json"];

/// Manifests of the installed software drivers: Mesa's lavapipe and SwiftShader.
pub(crate) fn software() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(VULKAN).into_iter().flatten().flatten();
    let lavapipe = entries
        .map(|entry| entry.path())
        .find(|path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("lvp_icd")));
    let swiftshader = SWIFTSHADER.iter().map(PathBuf::from).find(|path| path.is_file());
    lavapipe.into_iter().chain(swiftshader).collect()
}

/// Whether a supported browser is installed.
pub(crate) fn browser() -> bool {
    ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]
        .iter()
        .any(|path| Path::new(path).is_file())
}

/// Environment variables with which Vulkan uses only the first `max` of these drivers; empty without any (Metal, DirectX).
pub(crate) fn environment(max: usize) -> Vec<(&'static str, String)> {
    let paths = software().into_iter().take(max);
    let paths: Vec<String> = paths.map(|path| path.display().to_string()).collect();
    if paths.is_empty() {
        return vec![];
    }
    // The first is the older name of the second; older loaders need it.
    let mut variables =
        vec![("VK_ICD_FILENAMES", paths.join(":")), ("VK_DRIVER_FILES", paths.join(":"))];
    if std::env::var_os("XDG_RUNTIME_DIR").is_none() {
        // Drivers look for a display there and warn without it.
        variables.push(("XDG_RUNTIME_DIR", std::env::temp_dir().display().to_string()));
    }
    variables
}
