//! Each misbehaviour of a server has its own test.

mod changes;
mod interruptions;
mod ranges;
mod redirects;
mod server;

use std::{ops::Range, time::Duration};

use pollster::block_on;

use self::server::{Reply, Request, Server};
use crate::{ByteSource, Bytes, HttpOptions, HttpSource, SourceError};

/// Bytes that differ from place to place.
fn content(len: usize) -> Vec<u8> {
    (0..len).map(byte_at).collect()
}

fn byte_at(index: usize) -> u8 {
    (index % 251) as u8
}

/// Patience for a server on the same machine.
fn hasty() -> HttpOptions {
    HttpOptions {
        attempts: 4,
        backoff: Duration::from_millis(1),
        stall: Duration::from_millis(2_000),
        ..HttpOptions::default()
    }
}

fn open(server: &Server) -> Result<HttpSource, SourceError> {
    HttpSource::open(&server.url("/model.gguf"), hasty())
}

fn read(source: &HttpSource, range: Range<u64>) -> Result<Bytes, SourceError> {
    block_on(source.read(range))
}

/// A server that opens well and then answers as `later` says.
fn well_then(
    file: Vec<u8>,
    later: impl Fn(&Request, Reply) -> Reply + Send + Sync + 'static,
) -> Server {
    Server::start(move |request| {
        let reply = Reply::part(&file, request);
        if request.number == 0 { reply } else { later(request, reply) }
    })
}

/// Opens against `answer` and gives the error.
fn open_error(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> SourceError {
    open(&Server::start(answer)).expect_err("opening must fail")
}

/// Opens well, reads a range past the head against `later`, and gives the error.
fn read_error(later: impl Fn(&Request, Reply) -> Reply + Send + Sync + 'static) -> SourceError {
    let server = well_then(content(200_000), later);
    let source = open(&server).expect("opening must succeed");
    read(&source, 100_000..150_000).expect_err("reading must fail")
}
