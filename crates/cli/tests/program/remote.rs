//! `rullama run` through a server: what is refused, what Ctrl-C does, and what errors say.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    interrupt::press,
    program::{Program, has, rullama},
    serve::Serving,
    store::Store,
};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that says it is rullama and has any model, and what happens to the chats it is asked for.
struct Fake {
    url: String,
    /// The bodies of requests for a chat.
    chats: Receiver<Value>,
    /// A word for each chat whose client has closed the connection.
    left: Receiver<()>,
}

impl Fake {
    /// A server that replies to a chat with these lines, and then with nothing.
    fn start(lines: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let ((asked, chats), (gone, left)) = (channel(), channel());
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (asked, gone) = (asked.clone(), gone.clone());
                thread::spawn(move || serve(&stream, lines, &asked, &gone));
            }
        });
        Self { url, chats, left }
    }

    fn run(&self, args: &[&str]) -> Program {
        rullama(["run", "any"]).and(args).env("OLLAMA_HOST", &self.url)
    }
}

/// Answers the requests of a connection.
fn serve(mut stream: &TcpStream, lines: &[&str], asked: &Sender<Value>, gone: &Sender<()>) {
    let mut reader = BufReader::new(stream);
    while let Some((path, body)) = request(&mut reader) {
        let head = "HTTP/1.1 200 OK\r\nServer: rullama/0\r\n";
        let text = match path.as_str() {
            "/api/version" => r#"{"version":"0"}"#,
            "/api/show" => r#"{"details":{"family":"gemma4"},"parameters":"top_k    7"}"#,
            _ => {
                let _ = asked.send(serde_json::from_slice(&body).unwrap());
                if !lines.is_empty() {
                    write!(stream, "{head}Content-Type: application/x-ndjson\r\n\r\n").unwrap();
                    lines.iter().for_each(|line| writeln!(stream, "{line}").unwrap());
                }
                // Silent, as a server that loads a model is.
                let _ = reader.read(&mut [0]);
                let _ = gone.send(());
                return;
            }
        };
        write!(stream, "{head}Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
    }
}

/// Path and body of the next request; none where the client closes the connection.
fn request(reader: &mut impl BufRead) -> Option<(String, Vec<u8>)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let lower = line.to_ascii_lowercase();
        if let Some(text) = lower.strip_prefix("content-length:") {
            length = text.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((path, body))
}

#[test]
fn ctrl_c_while_the_server_loads_keeps_the_chat_and_tells_the_server() {
    let server = Fake::start(&[]);
    let mut program = server.run(&["--chat"]);
    let mut child = program.spawn();
    let mut stdin = child.stdin.take().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    for message in ["one", "two"] {
        writeln!(stdin, "{message}").unwrap();
        let chat = server.chats.recv_timeout(PATIENCE).expect("a chat");
        // A message that got no reply is not sent again.
        assert_eq!(chat["messages"], json!([{ "role": "user", "content": message }]));
        press(&child);
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        has(&line, &["stopped"]);
        server.left.recv_timeout(PATIENCE).expect("the connection was closed");
    }
    writeln!(stdin, "/bye").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn ctrl_c_while_the_server_loads_ends_a_single_reply() {
    let server = Fake::start(&[]);
    let mut program = server.run(&["Hello"]);
    let mut child = program.spawn();
    drop(child.stdin.take());
    server.chats.recv_timeout(PATIENCE).expect("a chat");
    press(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    server.left.recv_timeout(PATIENCE).expect("the connection was closed");
}

/// Once the server has begun a reply, its errors come as lines.
#[test]
fn a_full_context_gets_the_same_advice_as_a_line() {
    let server = Fake::start(&[r#"{"error":"the prompt exceeds the context length"}"#]);
    has(&server.run(&["Hello"]).fails(1), &["exceeds the context length", "--ctx"]);
}

#[test]
fn options_that_no_model_takes_are_refused_before_the_server_is_asked() {
    let server = Fake::start(&[]);
    for (option, part) in [
        ("temprature=1", "unknown option temprature"),
        ("top_p=x", "top_p"),
        ("min_p=-1", "min_p"),
        ("num_ctx=8192", "--ctx"),
    ] {
        has(&server.run(&["Hello", "--option", option]).fails(1), &[part]);
    }
    let lines = "/set parameter temprature 1\n/set parameter num_ctx many\n/set parameter seed 7\n/show parameters\n";
    let outcome = server.run(&["--chat"]).stdin(lines).run();
    has(&outcome.stderr, &["unknown option temprature", "num_ctx must be a number of tokens"]);
    assert_eq!(outcome.stdout, "Set seed to 7.\nseed     7\ntop_k    7\n");
    assert!(server.chats.try_recv().is_err());
}

#[test]
fn a_chat_looks_as_it_does_without_a_server() {
    const DONE: &str = r#"{"message":{"content":"Hi."},"done":true,"done_reason":"stop","load_duration":1500000000,"prompt_eval_count":12,"prompt_eval_duration":500000000,"eval_count":3,"eval_duration":1000000000}"#;
    let server = Fake::start(&[DONE]);
    let lines = "/set system \"\"\n/set verbose\nHello\n/show info\n/show system\n/save x\n";
    let chat = server.run(&["--chat", "--keepalive", "10m", "--system", "Be brief."]);
    let outcome = chat.stdin(lines).run();
    has(&outcome.stdout, &["Removed the system message.", "Timings are on.", "Hi.\n"]);
    has(&outcome.stdout, &["model", "any", "architecture    gemma4", "messages        2"]);
    has(&outcome.stdout, &["No system message."]);
    has(&outcome.stderr, &["prompt eval count:    12 token(s)\n", "load duration:        1.500s"]);
    has(&outcome.stderr, &["--local"]);
    let sent = server.chats.recv_timeout(PATIENCE).expect("a chat");
    assert_eq!(sent["messages"][0], json!({ "role": "system", "content": "" }));
    assert_eq!(sent["keep_alive"], "10m");
}

/// It may have the model, and the user the key.
#[test]
fn a_server_that_needs_a_key_is_told() {
    const KEY: &str = "a-key-of-this-test";
    let store = Store::empty();
    let args = ["serve", "--port", "0", "--device", "cpu", "--json", "--api-key", KEY];
    let serving = Serving::start(store.rullama(&args));
    let line: Value = serde_json::from_str(&serving.first_line).unwrap();
    let url = line["url"].as_str().unwrap().trim_end_matches('/').to_owned();
    let run = |key: &str| {
        let run = rullama(["run", "demo", "What is 23 + 45?", "--temperature", "0", "--json"]);
        run.env("OLLAMA_HOST", &url).env("RULLAMA_API_KEY", key).run()
    };
    let (without, with) = (run("another"), run(KEY));
    has(&without.stderr, &[&url, "RULLAMA_API_KEY"]);
    assert!(with.stderr.is_empty() && with.stdout.contains("\"server\""), "{with:?}");
    assert!(without.stdout.contains("68") && !without.stdout.contains("\"server\""));
    serving.end("TERM");
}

/// A folder named by the user means its models, whatever a server has.
#[test]
fn a_store_that_is_named_is_not_the_servers() {
    let (server, store) = (Fake::start(&[]), Store::empty());
    let run = store.rullama(&["run", "any", "Hello"]).env("OLLAMA_HOST", &server.url);
    has(&run.fails(3), &["no model any:latest", store.root().to_str().unwrap()]);
}

#[test]
fn without_a_server_the_address_is_named() {
    let none = |args: &[&str]| rullama(args).env("OLLAMA_HOST", "127.0.0.1:1").fails(1);
    has(&none(&["ps"]), &["http://127.0.0.1:1;", "rullama serve", "OLLAMA_HOST", "refused"]);
    has(&none(&["stop", "demo"]), &["http://127.0.0.1:1;"]);
    let port = rullama(["ps"]).env("OLLAMA_HOST", "127.0.0.1:x").fails(1);
    has(&port, &["OLLAMA_HOST", "127.0.0.1:x"]);
    let store = Store::empty();
    let tls = ["serve", "--port", "0", "--device", "cpu", "--json", "--tls", "self-signed"];
    let serving = Serving::start(store.rullama(&tls));
    let line: Value = serde_json::from_str(&serving.first_line).unwrap();
    let url = line["url"].as_str().unwrap().trim_end_matches('/').to_owned();
    has(&rullama(["ps"]).env("OLLAMA_HOST", &url).fails(1), &[&url, "certificate"]);
    serving.end("TERM");
}
