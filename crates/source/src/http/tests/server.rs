//! A small HTTP server that misbehaves on request.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

/// A client's request.
#[derive(Debug, Clone)]
pub(super) struct Request {
    /// Number of earlier requests.
    pub(super) number: usize,
    pub(super) path: String,
    /// By lower-case name.
    pub(super) headers: HashMap<String, String>,
}

impl Request {
    /// First and last byte requested.
    pub(super) fn range(&self) -> (u64, u64) {
        let value = self.headers.get("range").expect("a Range header");
        let (first, last) = value.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
        (first.parse().unwrap(), last.parse().unwrap())
    }
}

/// What the server sends, and where it stops sending.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    stop: Option<(usize, Stop)>,
}

#[derive(Debug, Clone, Copy)]
enum Stop {
    Close,
    Stall(Duration),
}

impl Reply {
    pub(super) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let headers = vec![("Content-Length".into(), body.len().to_string())];
        Self { status, headers, body, stop: None }
    }

    /// The range requested of `file`, as a good server sends it.
    pub(super) fn part(file: &[u8], request: &Request) -> Self {
        let (first, last) = request.range();
        let last = last.min(file.len() as u64 - 1);
        let body = file[first as usize..=last as usize].to_vec();
        Self::new(206, body)
            .header("Content-Range", &format!("bytes {first}-{last}/{}", file.len()))
    }

    /// Adds a header, or replaces the one of this name.
    pub(super) fn header(self, name: &str, value: &str) -> Self {
        let mut reply = self.without(name);
        reply.headers.push((name.into(), value.into()));
        reply
    }

    pub(super) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(n, _)| !n.eq_ignore_ascii_case(name));
        self
    }

    /// Sends another body under the same headers.
    pub(super) fn body(mut self, body: Vec<u8>) -> Self {
        self.body = body;
        self
    }

    /// Closes the connection after `count` bytes of the body.
    pub(super) fn cut_after(mut self, count: usize) -> Self {
        self.stop = Some((count, Stop::Close));
        self
    }

    /// Sends nothing more for a while after `count` bytes of the body.
    pub(super) fn stall_after(mut self, count: usize, pause: Duration) -> Self {
        self.stop = Some((count, Stop::Stall(pause)));
        self
    }

    /// Sends the reply; returns whether the connection stays open.
    fn send(&self, stream: &mut TcpStream) -> bool {
        let mut bytes = format!("HTTP/1.1 {} Whatever\r\n", self.status).into_bytes();
        for (name, value) in &self.headers {
            bytes.extend(format!("{name}: {value}\r\n").bytes());
        }
        bytes.extend(b"\r\n");
        let count = self.stop.map_or(self.body.len(), |(count, _)| count);
        bytes.extend(&self.body[..count]);
        let sent = stream.write_all(&bytes).is_ok();
        match self.stop {
            None => sent,
            Some((_, Stop::Close)) => false,
            Some((_, Stop::Stall(pause))) => {
                thread::sleep(pause);
                false
            }
        }
    }
}

type Handler = dyn Fn(&Request) -> Reply + Send + Sync;

/// A server on this machine that calls a function for every request. It stops when dropped.
pub(super) struct Server {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    handler: Box<Handler>,
    requests: Mutex<Vec<Request>>,
    connections: AtomicUsize,
    stopped: AtomicBool,
}

impl Server {
    pub(super) fn start(handler: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            handler: Box::new(handler),
            requests: Mutex::default(),
            connections: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if accepting.stopped.load(Ordering::SeqCst) {
                    return;
                }
                accepting.connections.fetch_add(1, Ordering::SeqCst);
                let serving = Arc::clone(&accepting);
                thread::spawn(move || serving.serve(stream.unwrap()));
            }
        });
        Self { port, shared }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The requests received so far.
    pub(super) fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    pub(super) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

impl Shared {
    fn serve(&self, mut stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while let Some((path, headers)) = read_request(&mut reader) {
            let request = {
                let mut requests = self.requests.lock().unwrap();
                let request = Request { number: requests.len(), path, headers };
                requests.push(request.clone());
                request
            };
            if !(self.handler)(&request).send(&mut stream) {
                return;
            }
        }
    }
}

fn read_request(reader: &mut impl BufRead) -> Option<(String, HashMap<String, String>)> {
    let mut lines = reader.lines().map_while(Result::ok);
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let headers = lines
        .take_while(|line| !line.is_empty())
        .filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        })
        .collect();
    Some((path, headers))
}
