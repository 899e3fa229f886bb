//! Every command ends with its documented exit code, also if it is interrupted at any moment.

use std::{
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use super::{Program, Row, golden, in_parallel, moment};

/// The prompt of `run`.
const QUESTION: &str = "What is 2 + 3?";
/// Maximum time before an endless reply is interrupted.
const GENERATES: Duration = Duration::from_millis(500);
/// The exit code of an interrupted program.
const INTERRUPTED: i32 = 130;

/// One command line, built for each run in a new folder.
struct Case {
    name: &'static str,
    args: fn(&Path, &str) -> Result<Vec<String>>,
}

const CASES: [Case; 5] = [
    Case { name: "run", args: |_, device| words(&["run", "demo", QUESTION], device) },
    Case {
        name: "eval",
        args: |folder, device| {
            fs::write(folder.join("ids.json"), "[2, 30, 31, 32]")?;
            let model = golden("gguf/micro-e2b-Q8_0.gguf");
            words(&["eval", &model, "--ids-file", "ids.json", "--out", "x.safetensors"], device)
        },
    },
    Case {
        name: "embed",
        args: |_, device| words(&["embed", &embedding()?, "a small test"], device),
    },
    Case {
        name: "bench -n 1",
        args: |_, device| {
            words(&["bench", "demo", "-p", "0", "-n", "1", "-r", "1", "--no-agreement"], device)
        },
    },
    Case {
        name: "train --steps 1",
        args: |folder, device| {
            fs::write(folder.join("data.jsonl"), TRAINING)?;
            let args = ["train", "demo", "data.jsonl", "--out", "adapter"];
            words(&[&args[..], &["--steps", "1"]].concat(), device)
        },
    },
];

/// A training example.
pub(super) const TRAINING: &str = concat!(
    r#"{"messages":[{"role":"user","content":"What is your name?"},"#,
    r#"{"role":"assistant","content":"My name is Rullama."}]}"#,
    "\n"
);

pub(super) fn drill(program: &Program, runs: usize, done: &mut dyn FnMut(Row)) -> Result<()> {
    for case in &CASES {
        let attempt = |_| {
            let folder = TempDir::new()?;
            let args = (case.args)(folder.path(), &program.device)?;
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            program.succeeds(folder.path(), &args, "").map(|_| ())
        };
        done(Row::of(format!("`{}` ends with 0", case.name), in_parallel(runs, attempt)));
    }
    done(Row::of("`run`, Ctrl-C at a random moment", interrupted(program, runs)?));
    done(Row::of(
        "`run`, Ctrl-C while it generates",
        in_parallel(runs, |_| interrupted_generation(program)),
    ));
    done(Row::of("`run`, reader closes the pipe", in_parallel(runs, |_| closed(program))));
    Ok(())
}

/// Sends Ctrl-C at a random moment from the start to shortly after the end of an ordinary run.
fn interrupted(program: &Program, runs: usize) -> Result<Vec<Result<()>>> {
    let args = words(&["run", "demo", "Tell me a story about a fox."], &program.device)?;
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let folder = TempDir::new()?;
    let start = Instant::now();
    program.succeeds(folder.path(), &args, "")?;
    let usual = start.elapsed();
    Ok(in_parallel(runs, |_| {
        let folder = TempDir::new()?;
        let mut running = program.start(folder.path(), &args)?;
        running.close();
        thread::sleep(moment(usual.mul_f32(1.1)));
        let pressed = running.alive()?;
        running.interrupt()?;
        let ended = running.end()?;
        let left = fs::read_dir(folder.path())?.count();
        match ended.status.code() {
            // It may have been finished by then, or too far to be stopped.
            Some(0) => {}
            Some(INTERRUPTED) if pressed => {}
            // A signal before the handler is installed ends the process, as shells expect.
            None if ended.how().contains("SIGINT") => {}
            _ => bail!("{}: {}", ended.how(), ended.stderr),
        }
        if left > 0 {
            bail!("{left} files were left");
        }
        Ok(())
    }))
}

/// Sends Ctrl-C some time after the first token of a reply that cannot end by itself: its schema requires more items
/// than fit in the context.
fn interrupted_generation(program: &Program) -> Result<()> {
    let schema = r#"{"type":"array","items":{"type":"integer"},"minItems":100000}"#;
    let args = words(&["run", "demo", QUESTION, "--format", schema], &program.device)?;
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let folder = TempDir::new()?;
    let mut running = program.start(folder.path(), &args)?;
    running.close();
    running.wait_for_output()?;
    thread::sleep(moment(GENERATES));
    running.interrupt()?;
    let ended = running.end()?;
    match ended.status.code() {
        Some(INTERRUPTED) if fs::read_dir(folder.path())?.count() == 0 => Ok(()),
        Some(INTERRUPTED) => bail!("files were left"),
        _ => bail!("{}: {}", ended.how(), ended.stderr),
    }
}

/// `rullama run … | head -c 1`
fn closed(program: &Program) -> Result<()> {
    let folder = TempDir::new()?;
    let binary = program.path.display();
    let device = &program.device;
    let line = format!(
        "{{ '{binary}' run demo '{QUESTION}' --device {device} </dev/null; echo $? >code; }} | head -c 1"
    );
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &line]);
    let ended = program.start_command(shell, folder.path())?.end()?;
    let code =
        fs::read_to_string(folder.path().join("code")).context("no exit code was written")?;
    if code.trim() != "0" {
        bail!("exit code {}: {}", code.trim(), ended.stderr);
    }
    Ok(())
}

/// A golden embedding model.
fn embedding() -> Result<String> {
    let folder = golden("embedding");
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "gguf") {
            return Ok(path.display().to_string());
        }
    }
    bail!("{folder} has no model")
}

fn words(args: &[&str], device: &str) -> Result<Vec<String>> {
    Ok(args.iter().chain(&["--device", device]).map(ToString::to_string).collect())
}
