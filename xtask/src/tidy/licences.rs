//! Every dependency's licence must be one we can ship under MIT OR Apache-2.0.

use serde_json::Value;

use super::{packages, text};

/// Licences that ask for nothing but a notice, or (MPL-2.0) for nothing beyond their own files, which we do not change.
const FINE: [&str; 13] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MPL-2.0",
    "Unicode-3.0",
    "Zlib",
];

pub(super) fn check(metadata: &Value, problems: &mut Vec<String>) {
    for package in packages(metadata) {
        let licence = text(package, "license");
        if !acceptable(licence) {
            problems.push(format!(
                "{} {} has licence `{licence}`, which is not on the list in xtask/src/tidy/licences.rs",
                text(package, "name"),
                text(package, "version"),
            ));
        }
    }
}

/// Whether an SPDX expression leaves us a choice we can take: every `AND` part has an `OR` part that is fine.
fn acceptable(expression: &str) -> bool {
    let plain = expression.replace('/', " OR ").replace(['(', ')'], " ");
    plain.split(" AND ").all(|part| part.split(" OR ").any(|name| FINE.contains(&name.trim())))
}

#[cfg(test)]
mod tests {
    use super::acceptable;

    #[test]
    fn expressions() {
        for fine in
            ["MIT", "MIT OR GPL-3.0", "MIT/Apache-2.0", "(MIT OR Apache-2.0) AND Unicode-3.0"]
        {
            assert!(acceptable(fine), "{fine}");
        }
        for bad in ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT OR Apache-2.0) AND GPL-3.0"] {
            assert!(!acceptable(bad), "{bad}");
        }
    }
}
