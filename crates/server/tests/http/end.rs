//! How a server ends, and how it does not begin.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use rullama_gguf::{DType, Writer};
use rullama_server::{Options, Server, ServerError};

use crate::running::Running;

/// A model of more bytes than the sockets between us hold.
fn large() -> Vec<u8> {
    let file = Writer::new().kv("general.architecture", "gemma4");
    file.tensor("x", &[8 << 20], DType::F32, vec![7; 32 << 20]).finish().unwrap()
}

#[test]
fn an_answer_in_flight_is_finished() {
    let mut server = Running::start();
    let bytes = large();
    let path = server.add("gemma4", &bytes);
    let mut stream = TcpStream::connect(server.address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = vec![0; 1000];
    stream.read_exact(&mut answer).unwrap();
    server.stop();
    std::thread::sleep(Duration::from_millis(100));
    stream.read_to_end(&mut answer).unwrap();
    assert!(answer.ends_with(&bytes));
    server.wait();
    assert!(TcpStream::connect(server.address).is_err());
}

/// Without a limit this one would wait for ever.
#[test]
fn a_client_that_does_not_read_is_left_behind() {
    let mut server = Running::start();
    let path = server.add("gemma4", &large());
    let mut stream = TcpStream::connect(server.address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    stream.read_exact(&mut [0; 1000]).unwrap();
    server.stop();
    server.wait();
}

#[test]
fn connections_that_say_nothing_do_not_hold_it_for_long() {
    let mut server = Running::start();
    let mut used = TcpStream::connect(server.address).unwrap();
    write!(used, "GET /api/version HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = [0; 100];
    used.read_exact(&mut answer).unwrap();
    let _silent = TcpStream::connect(server.address).unwrap();
    let start = Instant::now();
    server.stop();
    server.wait();
    println!("ended after {:?}", start.elapsed());
}

#[test]
fn a_port_that_is_taken() {
    let server = Running::start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let second = runtime.block_on(Server::bind(Options::new(server.address)));
    let error = second.err().unwrap();
    assert!(matches!(error, ServerError::Bind { address, .. } if address == server.address));
    assert!(error.to_string().contains("--port"), "{error}");
}
