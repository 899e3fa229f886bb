//! The program under test: run in an empty folder with an empty home, and killed if it hangs.

use std::{
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::command::output;

/// Time limit of every process of a drill, also on a software GPU.
const TIMEOUT: Duration = Duration::from_secs(180);

/// The binary to run, and the device.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    /// The binary.
    pub(crate) path: PathBuf,
    /// Value of `--device`.
    pub(crate) device: String,
    /// Additional environment variables.
    pub(crate) variables: Vec<(&'static str, String)>,
}

/// How a process ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// The exit code, or the signal that ended it.
    pub(crate) fn how(&self) -> String {
        match self.status.code() {
            Some(code) => format!("exit code {code}"),
            None => self.status.to_string(),
        }
    }
}

/// A process, with its output being collected.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    /// Bytes written to standard output so far.
    written: Arc<AtomicUsize>,
    stdout: JoinHandle<String>,
    stderr: JoinHandle<String>,
    /// Its home and temporary files, removed on drop.
    _home: TempDir,
}

impl Program {
    /// Starts it in this folder; standard input stays open until [`Running::close`] or the end.
    pub(crate) fn start(&self, folder: &Path, args: &[&str]) -> Result<Running> {
        let mut command = Command::new(&self.path);
        command.args(args);
        self.start_command(command, folder)
    }

    /// Starts another command, such as a shell that starts the program.
    pub(crate) fn start_command(&self, mut command: Command, folder: &Path) -> Result<Running> {
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        Running::start(command, folder)
    }

    /// Runs it to the end with this standard input.
    pub(crate) fn run(&self, folder: &Path, args: &[&str], stdin: &str) -> Result<Ended> {
        let mut running = self.start(folder, args)?;
        running.write(stdin)?;
        running.close();
        running.end()
    }

    /// Runs it and expects success.
    pub(crate) fn succeeds(&self, folder: &Path, args: &[&str], stdin: &str) -> Result<Ended> {
        let ended = self.run(folder, args, stdin)?;
        if !ended.status.success() {
            bail!("`rullama {}` ended with {}: {}", args.join(" "), ended.how(), ended.stderr);
        }
        Ok(ended)
    }
}

impl Running {
    fn start(mut command: Command, folder: &Path) -> Result<Self> {
        let home = TempDir::new()?;
        let cache = std::env::var("HOME").map(|home| format!("{home}/.cache")).unwrap_or_default();
        command.current_dir(folder).env("HOME", home.path()).env("USERPROFILE", home.path());
        command.env("TMPDIR", home.path()).env_remove("OLLAMA_MODELS");
        // Compiled kernels are kept between runs, as on a user's machine.
        command.env("MESA_SHADER_CACHE_DIR", &cache).env("__GL_SHADER_DISK_CACHE_PATH", cache);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command.spawn().with_context(|| format!("{name} could not be started"))?;
        let stdin = child.stdin.take();
        let written = Arc::new(AtomicUsize::new(0));
        let stdout = collect(child.stdout.take(), Arc::clone(&written));
        let stderr = collect(child.stderr.take(), Arc::default());
        Ok(Self { child, stdin, written, stdout, stderr, _home: home })
    }

    /// Writes to its standard input; a process that has ended does not read.
    pub(crate) fn write(&mut self, text: &str) -> Result<()> {
        let stdin = self.stdin.as_mut().context("standard input was closed")?;
        let _ = stdin.write_all(text.as_bytes()).and_then(|()| stdin.flush());
        Ok(())
    }

    /// Closes its standard input.
    pub(crate) fn close(&mut self) {
        self.stdin = None;
    }

    /// Sends SIGINT, as Ctrl-C on a terminal does. The process may just have ended.
    pub(crate) fn interrupt(&mut self) -> Result<()> {
        if self.child.try_wait()?.is_none() {
            let _ = output("kill", &["-INT", &self.child.id().to_string()]);
        }
        Ok(())
    }

    /// Sends SIGKILL.
    pub(crate) fn kill(&mut self) -> Result<()> {
        Ok(self.child.kill()?)
    }

    /// Whether it still runs.
    pub(crate) fn alive(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// Waits until it has written something to standard output, or has ended.
    pub(crate) fn wait_for_output(&mut self) -> Result<()> {
        let start = Instant::now();
        while self.written.load(Ordering::Relaxed) == 0 && self.alive()? {
            if start.elapsed() > TIMEOUT {
                bail!("it wrote nothing within {} s", TIMEOUT.as_secs());
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Waits for the end; a process that hangs is killed, which is an error.
    pub(crate) fn end(mut self) -> Result<Ended> {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            if start.elapsed() > TIMEOUT {
                self.child.kill()?;
                self.child.wait()?;
                bail!("it did not end within {} s", TIMEOUT.as_secs());
            }
            thread::sleep(Duration::from_millis(5));
        };
        let text = |thread: JoinHandle<String>| thread.join().unwrap_or_default();
        Ok(Ended { status, stdout: text(self.stdout), stderr: text(self.stderr) })
    }
}

/// Reads a pipe to its end on a thread, so that the process never blocks, and counts its bytes.
fn collect(pipe: Option<impl Read + Send + 'static>, read: Arc<AtomicUsize>) -> JoinHandle<String> {
    thread::spawn(move || {
        let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
        if let Some(mut pipe) = pipe {
            // Bytes read before an error are kept.
            while let Ok(count @ 1..) = pipe.read(&mut chunk) {
                bytes.extend_from_slice(&chunk[..count]);
                read.fetch_add(count, Ordering::Relaxed);
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
