//! Has this crate compiled again when the app it embeds is built or goes away: the compiler alone notices only files it embedded
//! the last time.

use std::path::Path;

fn main() {
    let app = Path::new("../../web/app");
    let built = app.join("dist");
    // A path that is not there would be a reason to compile every time.
    let watched =
        [built.as_path(), app, Path::new("../../web")].into_iter().find(|path| path.exists());
    if let Some(path) = watched {
        println!("cargo:rerun-if-changed={}", path.display());
    }
    println!("cargo:rerun-if-changed=build.rs");
}
