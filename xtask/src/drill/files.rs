//! The user's files survive kill -9 and a full disk while the program writes.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use super::{Program, Row, exits::TRAINING, golden, moment};
use crate::command::output;

/// Age from which the program removes unlocked part files.
const STALE: Duration = Duration::from_secs(6);

/// A command that replaces a file of the user.
struct Write {
    name: &'static str,
    /// The file or folder it writes.
    target: &'static str,
    args: fn() -> Vec<String>,
    stdin: &'static str,
    /// Checks the target with a command that reads it.
    usable: fn(&Program, &Path) -> Result<()>,
}

const WRITES: [Write; 4] = [
    Write {
        name: "adapter merge",
        target: "merged.gguf",
        args: || {
            let model = golden("gguf/tiny-e2b-Q4_K_M.gguf");
            let adapter = golden("gguf/tiny-e2b-lora-F32.gguf");
            words(&["adapter", "merge", &model, "--adapter", &adapter, "--out", "merged.gguf"])
        },
        stdin: "",
        usable: |program, folder| check(program, folder, &["verify", "merged.gguf"], ""),
    },
    Write {
        name: "adapter convert",
        target: "adapter.gguf",
        args: || {
            let adapter = golden("gguf/tiny-e2b-lora-F32.gguf");
            words(&["adapter", "convert", &adapter, "--out", "adapter.gguf"])
        },
        stdin: "",
        usable: |program, folder| check(program, folder, &["adapter", "show", "adapter.gguf"], ""),
    },
    Write {
        name: "/save in a chat",
        target: "chat.saved",
        args: chat,
        stdin: "Hello\n/save chat.saved\n/save chat.saved\n/save chat.saved\n/save chat.saved\n/bye\n",
        usable: |program, folder| {
            let args = chat();
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let ended = program.succeeds(folder, &args, "/load chat.saved\n/bye\n")?;
            ensure!(ended.stdout.contains("Loaded"), "it cannot be loaded: {}", ended.stderr);
            Ok(())
        },
    },
    Write {
        name: "train with checkpoints",
        target: "adapter/checkpoint.safetensors",
        args: train,
        stdin: "",
        usable: |program, folder| {
            // It resumes from the checkpoint.
            let args = train();
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let ended = program.succeeds(folder, &args, "")?;
            ensure!(!ended.stderr.contains("no checkpoint"), "the checkpoint is gone");
            Ok(())
        },
    },
];

/// kill -9 at a random moment: the target is the old or the new one, never incomplete.
pub(super) fn kill(program: &Program, runs: usize, done: &mut dyn FnMut(Row)) -> Result<()> {
    for write in &WRITES {
        done(Row::of(write.row("kill -9"), write.killed(program, runs)?));
    }
    Ok(())
}

/// A full disk: the old target survives, no part file is left, and the exit code reports the failure.
pub(super) fn disk_full(program: &Program, _: usize, done: &mut dyn FnMut(Row)) -> Result<()> {
    for write in &WRITES {
        let what = write.row("disk full");
        done(match SmallDisk::mount()? {
            Some(disk) => Row::of(what, vec![write.on_full_disk(program, &disk.0)]),
            None => Row::not_tried(&what, "only root may mount a tmpfs"),
        });
    }
    Ok(())
}

impl Write {
    fn row(&self, what: &str) -> String {
        format!("`{}`, {what}", self.name)
    }

    fn killed(&self, program: &Program, runs: usize) -> Result<Vec<Result<()>>> {
        let folder = TempDir::new()?;
        let folder = folder.path();
        self.prepare(folder)?;
        let args = (self.args)();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let start = Instant::now();
        program.succeeds(folder, &args, self.stdin)?;
        let usual = start.elapsed();
        let mut attempts = Vec::new();
        for _ in 0..runs {
            let mut running = program.start(folder, &args)?;
            running.write(self.stdin)?;
            running.close();
            thread::sleep(moment(usual));
            running.kill()?;
            running.end()?;
            attempts.push(self.whole(program, folder));
        }
        attempts.push(self.cleaned_up(program, folder));
        Ok(attempts)
    }

    /// The target is usable.
    fn whole(&self, program: &Program, folder: &Path) -> Result<()> {
        if self.target.contains("checkpoint") && !folder.join(self.target).exists() {
            // No step had ended yet.
            return Ok(());
        }
        // The check gets a copy, so that it cannot repair the target before the next attempt.
        let copy = TempDir::new()?;
        copy_folder(folder, copy.path())?;
        (self.usable)(program, copy.path())
            .with_context(|| format!("{} is broken", self.target))?;
        Ok(())
    }

    /// Part files of killed processes are removed by a later write to the same folder.
    fn cleaned_up(&self, program: &Program, folder: &Path) -> Result<()> {
        let args = (self.args)();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        thread::sleep(STALE);
        program.succeeds(folder, &args, self.stdin)?;
        let parts = files(folder)?.iter().filter(|path| is_part(path)).count();
        ensure!(parts == 0, "{parts} part files are left");
        Ok(())
    }

    fn on_full_disk(&self, program: &Program, disk: &Path) -> Result<()> {
        self.prepare(disk)?;
        let target = disk.join(self.target);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        let old = b"what the user had";
        if !self.target.contains("checkpoint") {
            fs::write(&target, old)?;
        }
        fill(disk)?;
        let args = (self.args)();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let ended = program.run(disk, &args, self.stdin)?;
        // A chat reports the failure and continues.
        let chats = self.name.contains("chat");
        let wanted = if chats { Some(0) } else { Some(1) };
        ensure!(ended.status.code() == wanted, "{}: {}", ended.how(), ended.stderr);
        let reported = ended.stderr.contains("space") || ended.stderr.contains("full");
        ensure!(reported, "the message does not say that the disk is full: {}", ended.stderr);
        if !self.target.contains("checkpoint") {
            ensure!(fs::read(&target)? == old, "the old {} is gone", self.target);
        }
        let parts: Vec<PathBuf> = files(disk)?.into_iter().filter(|path| is_part(path)).collect();
        ensure!(parts.is_empty(), "part files were left: {parts:?}");
        Ok(())
    }

    fn prepare(&self, folder: &Path) -> Result<()> {
        Ok(fs::write(folder.join("data.jsonl"), TRAINING)?)
    }
}

/// A tmpfs of 256 KiB, unmounted on drop.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount() -> Result<Option<Self>> {
        let folder = TempDir::new()?.keep();
        let path = folder.display().to_string();
        let mounted = output("mount", &["-t", "tmpfs", "-o", "size=256k", "tmpfs", &path]);
        if mounted.is_err() {
            fs::remove_dir(&folder)?;
            return Ok(None);
        }
        Ok(Some(Self(folder)))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Ignored if it is still in use.
        let _ = output("umount", &[&self.0.display().to_string()]);
        let _ = fs::remove_dir(&self.0);
    }
}

/// Fills a disk completely.
fn fill(disk: &Path) -> Result<()> {
    use std::io::Write as _;
    let mut file = fs::File::create(disk.join("ballast"))?;
    for size in [4096, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
    Ok(())
}

/// Whether it is a part file of an unfinished write.
fn is_part(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".part") || name.starts_with(".rullama")
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { found.extend(files(&path)?) } else { found.push(path) }
    }
    Ok(found)
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    for path in files(from)? {
        let target = to.join(path.strip_prefix(from)?);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::copy(&path, target)?;
    }
    Ok(())
}

fn check(program: &Program, folder: &Path, args: &[&str], stdin: &str) -> Result<()> {
    let ended = program.run(folder, args, stdin)?;
    if !ended.status.success() {
        bail!("{}: {}", ended.how(), ended.stderr);
    }
    Ok(())
}

fn chat() -> Vec<String> {
    let model = golden("gguf/micro-e2b-Q8_0.gguf");
    words(&["run", &model, "--chat", "--device", "cpu", "--num-predict", "4", "--temperature", "0"])
}

fn train() -> Vec<String> {
    let model = golden("gguf/micro-e2b-Q8_0.gguf");
    let args = ["train", &model, "data.jsonl", "--out", "adapter", "--device", "cpu", "--resume"];
    words(&[&args[..], &["--steps", "24", "--checkpoint-every", "1"]].concat())
}

fn words(args: &[&str]) -> Vec<String> {
    args.iter().map(ToString::to_string).collect()
}
