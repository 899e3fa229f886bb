//! Software GPUs: what machines without a GPU run the kernels on.

use std::path::{Path, PathBuf};

/// Where distributions describe their Vulkan drivers.
const VULKAN: &str = "/usr/share/vulkan/icd.d";
/// Chromium brings SwiftShader, a second driver with other limits: 4-wide subgroups, no f16.
const SWIFTSHADER: [&str; 2] =
    ["/usr/lib/chromium/vk_swiftshader_icd.json", "/usr/lib64/chromium/vk_swiftshader_icd.json"];

/// Descriptions of the software drivers that are installed: Mesa's lavapipe and SwiftShader.
pub(crate) fn software() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(VULKAN).into_iter().flatten().flatten();
    let lavapipe = entries
        .map(|entry| entry.path())
        .find(|path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("lvp_icd")));
    let swiftshader = SWIFTSHADER.iter().map(PathBuf::from).find(|path| path.is_file());
    lavapipe.into_iter().chain(swiftshader).collect()
}

/// Whether a browser we can drive is installed.
pub(crate) fn browser() -> bool {
    ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]
        .iter()
        .any(|path| Path::new(path).is_file())
}

/// Environment under which Vulkan shows the first of these drivers and no others, or as many as are requested; empty where there are none
/// (Metal, DirectX).
pub(crate) fn environment(most: usize) -> Vec<(&'static str, String)> {
    let paths = software().into_iter().take(most);
    let paths: Vec<String> = paths.map(|path| path.display().to_string()).collect();
    if paths.is_empty() {
        return vec![];
    }
    // The first is the older name of the second; loaders of both ages are in use.
    let mut variables =
        vec![("VK_ICD_FILENAMES", paths.join(":")), ("VK_DRIVER_FILES", paths.join(":"))];
    if std::env::var_os("XDG_RUNTIME_DIR").is_none() {
        // Drivers look for a display there and complain without it.
        variables.push(("XDG_RUNTIME_DIR", std::env::temp_dir().display().to_string()));
    }
    variables
}
