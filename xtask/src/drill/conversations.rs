//! Memory does not grow over many conversations in one process, on the host and on the GPU.

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::{Program, Row, golden};

/// Conversations per attempt of the other drills.
const FACTOR: usize = 20;
/// Allowed growth of host memory: allocators keep some; a leaked session per conversation would be far more.
const SLACK: f64 = 1.10;

pub(super) fn drill(program: &Program, runs: usize, done: &mut dyn FnMut(Row)) -> Result<()> {
    let count = runs * FACTOR;
    let outcome = flat(program, count);
    done(Row::of(format!("{count} conversations in one process, flat memory"), vec![outcome]));
    Ok(())
}

/// Chats and clears `count` times; compares the memory after the first fifth with the memory at the end.
fn flat(program: &Program, count: usize) -> Result<()> {
    let folder = TempDir::new()?;
    let model = golden("gguf/micro-e2b-Q8_0.gguf");
    let mut stdin = String::from("/set verbose\n/set parameter num_predict 2\n");
    for number in 0..count {
        stdin.push_str(&format!("Conversation number {number}\n/clear\n"));
    }
    stdin.push_str("/bye\n");
    let args = ["run", &model, "--chat", "--device", &program.device, "--temperature", "0"];
    let ended = program.succeeds(folder.path(), &args, &stdin)?;
    let both = format!("{}{}", ended.stdout, ended.stderr);
    for (name, slack) in [("gpu memory:", 1.0), ("host memory:", SLACK)] {
        let seen: Vec<f64> = both.lines().filter_map(|line| memory(line, name)).collect();
        ensure!(seen.len() == count, "{} of {count} reports of {name}", seen.len());
        let (early, late) = (seen[count / 5], seen[count - 1]);
        ensure!(late <= early * slack, "{name} grew from {early} to {late} bytes");
    }
    Ok(())
}

/// The bytes of a line such as `gpu memory:           7.2 GB`.
fn memory(line: &str, name: &str) -> Option<f64> {
    let (number, unit) = line.trim().strip_prefix(name)?.trim().split_once(' ')?;
    let scale = match unit {
        "B" => 1.0,
        "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        _ => return None,
    };
    number.parse::<f64>().ok().map(|number| number * scale).context("a number").ok()
}
