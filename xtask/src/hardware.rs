//! `cargo xtask hardware`: all checks that need a real GPU, as one report that can be pasted into an issue.

mod figures;

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result, bail, ensure};
use safetensors::SafeTensors;
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    command::{output, root, say, sh, target},
    drill::{self, Program, Row},
};

/// Largest difference from the reference logits, as in the golden tests with f32 activations.
const TOLERANCE: f32 = 1e-3;
/// Greedy tokens that are compared, up to the first with a small margin in the reference.
const GREEDY: usize = 16;
/// Failed cases of the op suite that the report names.
const SHOWN: usize = 20;

/// Options; a copied program needs neither cargo nor a toolchain.
struct Options {
    program: Program,
    /// Benchmarked in addition to the demo model, and compared with the figures of this GPU.
    models: Vec<String>,
    runs: usize,
    out: Option<String>,
}

/// `cargo xtask hardware [--program FILE] [--model MODEL…] [--runs N] [--out FILE]`
pub(crate) fn hardware(arguments: &[&str]) -> Result<()> {
    let options = options(arguments)?;
    let mut report = Report::default();
    report.text.push_str("# rullama on this machine's GPU\n\n");
    report.section("Machine", || machine(&options.program));
    report.section("Op suite", || ops(&options.program));
    report.section("Golden models", || goldens(&options.program));
    report.section("Exit codes", || exits(&options));
    report.section("Agreement, demo model", || bench(&options.program, "demo"));
    for model in &options.models {
        report.section(&format!("Speed, {model}"), || figures::compare(&options.program, model));
    }
    say(&report.text);
    if let Some(path) = &options.out {
        fs::write(path, &report.text).with_context(|| path.clone())?;
    }
    ensure!(report.failed.is_empty(), "failed: {}", report.failed.join(", "));
    Ok(())
}

fn options(arguments: &[&str]) -> Result<Options> {
    let (mut program, mut models, mut runs, mut out) = (None, Vec::new(), 20, None);
    let mut arguments = arguments.iter().copied();
    while let Some(option) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{option} needs a value"));
        match option {
            "--program" => program = Some(fs::canonicalize(value()?)?),
            "--model" => models.push(value()?.to_owned()),
            "--runs" => runs = value()?.parse().context("--runs takes a number")?,
            "--out" => out = Some(value()?.to_owned()),
            other => bail!("unknown option `{other}`"),
        }
    }
    let path = match program {
        Some(path) => path,
        None => {
            sh("cargo", &["build", "--release", "--package", "rullama-cli"])?;
            target().join("release").join(format!("rullama{}", std::env::consts::EXE_SUFFIX))
        }
    };
    let program = Program { path, device: "gpu".into(), variables: vec![] };
    Ok(Options { program, models, runs, out })
}

/// The report; a section that fails does not stop the others.
#[derive(Default)]
struct Report {
    text: String,
    failed: Vec<String>,
}

impl Report {
    fn section(&mut self, title: &str, make: impl FnOnce() -> Result<String>) {
        say(&format!("\n{title} …"));
        let text = make().unwrap_or_else(|error| {
            self.failed.push(title.to_owned());
            format!("**failed**: {error:#}\n")
        });
        self.text.push_str(&format!("## {title}\n\n{}\n\n", text.trim()));
    }
}

/// The program's version, the system and the GPU's features.
fn machine(program: &Program) -> Result<String> {
    let folder = TempDir::new()?;
    let version = program.succeeds(folder.path(), &["--version"], "")?.stdout;
    let system = output("uname", &["-srm"]).unwrap_or_else(|_| std::env::consts::OS.into());
    let driver = ["--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"];
    let driver = output("nvidia-smi", &driver).unwrap_or_default();
    let support =
        program.succeeds(folder.path(), &["ops", "support", "--filter", "rms_norm"], "")?;
    let lines = [version.trim(), system.trim(), driver.trim()];
    let facts = lines.into_iter().filter(|line| !line.is_empty());
    let facts: String = facts.map(|line| format!("- {line}\n")).collect();
    Ok(format!("{facts}\n```\n{}\n```\n", support.stdout.trim()))
}

/// Every kernel against its CPU reference, at every feature level the GPU can emulate.
fn ops(program: &Program) -> Result<String> {
    // Takes much longer than a drill's processes, so it runs without their time limit.
    let ended = Command::new(&program.path).args(["ops", "test", "--json"]).output()?;
    let cases: Vec<Value> = serde_json::from_slice(&ended.stdout)
        .with_context(|| String::from_utf8_lossy(&ended.stderr).into_owned())?;
    let count = |verdict: &str| cases.iter().filter(|case| case["verdict"] == verdict).count();
    let (passed, skipped, failed) = (count("passed"), count("skipped"), count("failed"));
    let summary = format!("{passed} passed, {skipped} skipped (too large), {failed} failed");
    let failures = cases.iter().filter(|case| case["verdict"] == "failed").take(SHOWN);
    let failures: String = failures.map(|case| format!("\n{case}")).collect();
    ensure!(failures.is_empty(), "{summary}:{failures}");
    ensure!(ended.status.success(), "exit status {}", ended.status);
    Ok(summary)
}

/// Logits and greedy tokens of all golden text models against the references.
fn goldens(program: &Program) -> Result<String> {
    let mut rows = Vec::new();
    let mut names: Vec<_> = fs::read_dir(root().join("goldens/text"))?.collect::<Result<_, _>>()?;
    names.sort_by_key(fs::DirEntry::path);
    for entry in names {
        let path = entry.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let outcome = golden(program, &path, &name);
        let note = outcome.as_ref().map(|worst| format!("largest difference {worst:.1e}"));
        let note = note.unwrap_or_default();
        let row = Row::of(name, vec![outcome.map(|_| ())]);
        rows.push(Row { note: if row.note.is_empty() { note } else { row.note }, ..row });
    }
    let table = drill::table(&rows);
    ensure!(rows.iter().all(|row| row.tried == row.survived), "\n\n{table}");
    Ok(table)
}

/// Runs one model on the GPU; returns the largest difference of its logits.
fn golden(program: &Program, reference: &Path, name: &str) -> Result<f32> {
    let reference = fs::read(reference)?;
    let reference = SafeTensors::deserialize(&reference)?;
    let mut worst = 0.0_f32;
    for prompt in ["short", "medium"] {
        let Ok(ids) = words(&reference, &format!("{prompt}.ids")) else { continue };
        let folder = TempDir::new()?;
        fs::write(folder.path().join("ids.json"), serde_json::to_string(&ids)?)?;
        let model = root().join(format!("goldens/gguf/{name}.gguf")).display().to_string();
        let args = ["eval", &model, "--ids-file", "ids.json", "--out", "out.safetensors"];
        let greedy = GREEDY.to_string();
        let more = ["--greedy", &greedy, "--device", "gpu"];
        program.succeeds(folder.path(), &[&args[..], &more].concat(), "")?;
        let found = fs::read(folder.path().join("out.safetensors"))?;
        let found = SafeTensors::deserialize(&found)?;
        worst = worst.max(compared(&found, &reference, prompt)?);
    }
    ensure!(worst < TOLERANCE, "logits differ by {worst}");
    Ok(worst)
}

/// The largest difference of logits; fails if a greedy token with a clear margin differs.
fn compared(found: &SafeTensors<'_>, reference: &SafeTensors<'_>, prompt: &str) -> Result<f32> {
    let floats = |file: &SafeTensors<'_>, name: &str| -> Result<Vec<f32>> {
        Ok(words(file, name)?.into_iter().map(f32::from_bits).collect())
    };
    let width = found.tensor("logits")?.shape()[1];
    let (logits, expected) =
        (floats(found, "logits")?, floats(reference, &format!("{prompt}.logits"))?);
    let positions = words(reference, &format!("{prompt}.positions"))?;
    let mut worst = 0.0_f32;
    for (row, at) in positions.into_iter().enumerate() {
        let found = logits.get(at as usize * width..).context("too few logits")?;
        let expected = expected.get(row * width..).context("too few reference logits")?;
        let pairs = found.iter().zip(expected).take(width);
        worst = pairs.map(|(a, b)| (a - b).abs()).fold(worst, f32::max);
    }
    let margins = floats(reference, &format!("{prompt}.greedy_margin"))?;
    let sure = margins.iter().take(GREEDY).take_while(|margin| **margin >= TOLERANCE).count();
    let (found, expected) =
        (words(found, "greedy")?, words(reference, &format!("{prompt}.greedy"))?);
    ensure!(found.get(..sure) == expected.get(..sure), "{prompt}: greedy tokens {found:?}");
    Ok(worst)
}

fn words(file: &SafeTensors<'_>, name: &str) -> Result<Vec<u32>> {
    let bytes = file.tensor(name)?.data();
    Ok(bytes.as_chunks().0.iter().map(|four| u32::from_le_bytes(*four)).collect())
}

fn exits(options: &Options) -> Result<String> {
    let rows = drill::rows(&options.program, options.runs, &["exits"])?;
    let table = drill::table(&rows);
    ensure!(rows.iter().all(|row| row.tried == row.survived), "\n\n{table}");
    Ok(table)
}

/// Speed of a model and the agreement of GPU and CPU with the demo model.
fn bench(program: &Program, model: &str) -> Result<String> {
    let mut command = Command::new(&program.path);
    command.args(["bench", model, "-p", "512", "-n", "128", "-d", "0"]);
    let ended = command.output()?;
    ensure!(ended.status.success(), "{}: {}", ended.status, String::from_utf8_lossy(&ended.stderr));
    Ok(format!("```\n{}\n```\n", String::from_utf8_lossy(&ended.stdout).trim()))
}
