//! Runs other programs from the root of the workspace.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context, Result, bail};

/// The root of the workspace. A copy of this program on a machine without cargo uses the current folder.
pub(crate) fn root() -> PathBuf {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the workspace");
    match (built.is_dir(), std::env::current_dir()) {
        (false, Ok(folder)) => folder,
        _ => built.into(),
    }
}

/// Cargo's target folder.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into)
}

/// Prints a line to the terminal.
#[expect(clippy::print_stdout, reason = "tasks report on the terminal")]
pub(crate) fn say(text: &str) {
    println!("{text}");
}

/// A program without the variables that cargo has set for this one: `ring` is built again whenever they change, and everything that uses it.
fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in names.filter(|name| is_of_package(name)) {
        command.env_remove(name);
    }
    command
}

fn is_of_package(name: &str) -> bool {
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}

/// Runs `program` with `args` in the root and shows its output.
pub(crate) fn sh(program: &str, args: &[&str]) -> Result<()> {
    sh_in(&root(), program, args)
}

/// Runs `program` with `args` in `dir`.
pub(crate) fn sh_in(dir: &Path, program: &str, args: &[&str]) -> Result<()> {
    sh_with(dir, &[], program, args)
}

/// Runs `program` with `args` in `dir` with additional environment variables.
pub(crate) fn sh_with(
    dir: &Path,
    variables: &[(&str, String)],
    program: &str,
    args: &[&str],
) -> Result<()> {
    let line = format!("{program} {}", args.join(" "));
    say(&format!("\n$ {line}"));
    let start = Instant::now();
    let status = command(program)
        .args(args)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .current_dir(dir)
        .status()
        .with_context(|| format!("`{program}` could not be started; is it installed?"))?;
    if !status.success() {
        bail!("`{line}` failed ({status})");
    }
    say(&format!("  took {:.1} s", start.elapsed().as_secs_f32()));
    Ok(())
}

/// Runs `program` and returns its standard output.
pub(crate) fn output(program: &str, args: &[&str]) -> Result<String> {
    let out = command(program)
        .args(args)
        .current_dir(root())
        .output()
        .with_context(|| format!("`{program}` could not be started; is it installed?"))?;
    if !out.status.success() {
        bail!("`{program} {}` failed: {}", args.join(" "), String::from_utf8_lossy(&out.stderr));
    }
    Ok(String::from_utf8(out.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::is_of_package;

    #[test]
    fn settings_of_the_user_stay() {
        for name in ["CARGO_PKG_NAME", "CARGO_PKG_VERSION_MAJOR", "CARGO_MANIFEST_DIR"] {
            assert!(is_of_package(name), "{name}");
        }
        for name in ["CARGO_TARGET_DIR", "CARGO_PROFILE_DEV_DEBUG", "CARGO_HOME", "PATH"] {
            assert!(!is_of_package(name), "{name}");
        }
    }
}
