//! `rullama serve` keeps responding while clients misbehave.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use super::{
    Program, Row,
    program::{Ended, Running},
};

/// Maximum time of an ordinary request while other clients misbehave.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Time within which the server must have closed connections without a complete header.
const HEADER_TIMEOUT: Duration = Duration::from_secs(45);

pub(super) fn drill(program: &Program, runs: usize, done: &mut dyn FnMut(Row)) -> Result<()> {
    // Above the server's connection limit, ordinary requests wait until slow ones are closed.
    let slow = (10 * runs).min(200);
    let what = format!("`serve`, {slow} clients that send headers slowly");
    done(Row::of(what, vec![slow_headers(program, slow)]));
    done(Row::of("`serve`, no file descriptors left", vec![out_of_descriptors(program)]));
    Ok(())
}

/// A server and its address.
struct Server {
    running: Running,
    address: SocketAddr,
}

impl Server {
    /// Starts a server with at most `descriptors` file descriptors.
    fn start(program: &Program, folder: &Path, descriptors: usize) -> Result<Self> {
        let mut shell = Command::new("sh");
        let line = format!(
            "ulimit -n {descriptors}; exec '{}' serve --port 0 --json --store . >url",
            program.path.display()
        );
        shell.args(["-c", &line]);
        let running = program.start_command(shell, folder)?;
        let start = Instant::now();
        loop {
            let text = std::fs::read_to_string(folder.join("url")).unwrap_or_default();
            if text.ends_with('\n') {
                let url = text.split("http://").nth(1).context("it printed no URL")?;
                let address = url.split(['/', '"']).next().unwrap_or_default();
                return Ok(Self { running, address: address.parse()? });
            }
            ensure!(start.elapsed() < Duration::from_secs(30), "it did not start");
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn connect(&self) -> Result<TcpStream> {
        let stream = TcpStream::connect_timeout(&self.address, REQUEST_TIMEOUT)?;
        stream.set_read_timeout(Some(REQUEST_TIMEOUT))?;
        stream.set_write_timeout(Some(REQUEST_TIMEOUT))?;
        Ok(stream)
    }

    /// Sends an ordinary request.
    fn responds(&self) -> Result<()> {
        let mut stream = self.connect()?;
        let host = self.address;
        write!(stream, "GET /api/version HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
        let mut response = String::new();
        stream.read_to_string(&mut response)?;
        ensure!(response.starts_with("HTTP/1.1 200"), "the response was {response:?}");
        Ok(())
    }

    /// Ends it with Ctrl-C.
    fn end(mut self) -> Result<Ended> {
        self.running.interrupt()?;
        let ended = self.running.end()?;
        ensure!(ended.status.success(), "{}: {}", ended.how(), ended.stderr);
        Ok(ended)
    }
}

/// Clients that never finish their headers do not block others and are disconnected after a while.
fn slow_headers(program: &Program, clients: usize) -> Result<()> {
    let folder = TempDir::new()?;
    let server = Server::start(program, folder.path(), 1024)?;
    let mut slow = Vec::new();
    for _ in 0..clients {
        let mut stream = server.connect()?;
        stream.write_all(b"GET /api/version HTTP/1.1\r\nX-Slow: ")?;
        slow.push(stream);
    }
    server.responds().context("with slow clients")?;
    let start = Instant::now();
    while !slow.is_empty() {
        ensure!(
            start.elapsed() < HEADER_TIMEOUT,
            "{} slow clients are still connected",
            slow.len()
        );
        thread::sleep(Duration::from_millis(500));
        // A disconnected client gets an error for its next byte, or the one after.
        slow.retain_mut(|stream| {
            let open = stream.write_all(b"x").is_ok();
            open && !disconnected(stream)
        });
    }
    server.responds().context("after slow clients")?;
    server.end().map(|_| ())
}

/// Whether the server has closed its side.
fn disconnected(stream: &mut TcpStream) -> bool {
    // A read that would block means that the connection is open.
    let _ = stream.set_read_timeout(Some(Duration::from_millis(1)));
    let mut bytes = [0; 256];
    match stream.read(&mut bytes) {
        Ok(0) => true,
        Ok(_) => false,
        Err(error) => {
            !matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
        }
    }
}

/// More clients than file descriptors: the process survives, and responds once they are gone.
fn out_of_descriptors(program: &Program) -> Result<()> {
    let folder = TempDir::new()?;
    let server = Server::start(program, folder.path(), 64)?;
    server.responds()?;
    // The kernel accepts connections that the process cannot.
    let clients: Vec<TcpStream> = (0..100).filter_map(|_| server.connect().ok()).collect();
    ensure!(clients.len() > 64, "only {} clients connected", clients.len());
    thread::sleep(Duration::from_secs(1));
    drop(clients);
    let start = Instant::now();
    while let Err(error) = server.responds() {
        if start.elapsed() > Duration::from_secs(20) {
            bail!(error.context("it does not respond after its clients are gone"));
        }
        thread::sleep(Duration::from_millis(200));
    }
    server.end().map(|_| ())
}
