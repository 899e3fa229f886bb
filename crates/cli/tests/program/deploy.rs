//! The files in `deploy` start a server: its flags, the probe's path and the metric of the autoscaler.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
};

use serde_json::Value;

use crate::{
    models::FileInFolder,
    program::{Program, has},
    serve::Serving,
    store::Store,
};

const KEY: &str = "key-of-this-test";

fn deployed(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    fs::read_to_string(folder.join(name)).unwrap()
}

/// A list in brackets that follows these words.
fn list(text: &str, words: &str) -> Vec<String> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(words));
    serde_json::from_str(line.unwrap_or_else(|| panic!("no {words}")).trim()).unwrap()
}

/// The words before the next comma or brace after a field.
fn field<'a>(text: &'a str, name: &str) -> &'a str {
    let (_, rest) = text.split_once(name).unwrap_or_else(|| panic!("no {name}"));
    rest.split([',', '}', '\n']).next().unwrap().trim().trim_matches('"')
}

/// The arguments of the image and of the manifest, with a free port and a key of this test.
fn arguments(keys: &str) -> Vec<String> {
    let mut words = list(&deployed("Containerfile"), "ENTRYPOINT ");
    assert_eq!(words.remove(0), "rullama");
    words.extend(list(&deployed("kubernetes.yaml"), "args: "));
    let port = words.iter().position(|word| word == "--port").unwrap() + 1;
    assert_eq!(words[port], field(&deployed("kubernetes.yaml"), "containerPort: "));
    "0".clone_into(&mut words[port]);
    let file = words.iter().position(|word| word == "/keys/keys").unwrap();
    keys.clone_into(&mut words[file]);
    words
}

fn get(address: &str, path: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

#[test]
fn the_manifest_starts_a_server_that_its_probe_and_its_autoscaler_understand() {
    let manifest = deployed("kubernetes.yaml");
    let (store, keys) = (Store::empty(), FileInFolder::new("keys", format!("{KEY}\n")));
    let words = arguments(keys.arg());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let program: Program = store.rullama(&words).and(["--json", "--device", "cpu"]);
    let serving = Serving::start(program);
    let line: Value = serde_json::from_str(&serving.first_line).unwrap();
    let url = line["url"].as_str().unwrap().to_owned();
    let address = url.strip_prefix("http://").unwrap().trim_end_matches('/');
    // The probe has no key.
    let probe = manifest.split_once("httpGet:").unwrap().1;
    let host = format!("Host: {}\r\n", field(probe, "value: "));
    has(&get(address, field(probe, "path: "), &host), &["HTTP/1.1 200"]);
    // Clients in the cluster call the server by the name of its service.
    let service = manifest.split_once("kind: Service").unwrap().1;
    let host = format!("Host: {}\r\n", field(service, "name: "));
    has(&get(address, "/api/tags", &host), &["HTTP/1.1 401"]);
    let with_key = format!("{host}Authorization: Bearer {KEY}\r\n");
    has(&get(address, "/api/tags", &with_key), &["HTTP/1.1 200", "demo"]);
    let metric = field(&manifest, "metric: { name: ").replacen('_', ":", 1);
    let path = field(&manifest, "prometheus.io/path: ");
    has(&get(address, path, &with_key), &["HTTP/1.1 200", &format!("\n{metric} 0")]);
    assert_eq!(serving.end("TERM").0, Some(0));
}

#[test]
fn streams_have_time_to_end_before_kubernetes_kills_the_server() {
    let words = list(&deployed("Containerfile"), "ENTRYPOINT ");
    let drain = words.iter().position(|word| word == "--drain").unwrap() + 1;
    let drain: u64 = words[drain].parse().unwrap();
    let manifest = deployed("kubernetes.yaml");
    let pause = manifest.split_once("command: [\"sleep\", \"").unwrap().1;
    let pause: u64 = pause.split('"').next().unwrap().parse().unwrap();
    let grace: u64 = field(&manifest, "terminationGracePeriodSeconds: ").parse().unwrap();
    // Unloading takes a few seconds more.
    assert!(grace >= drain + pause + 5, "{grace} s for {pause} s, {drain} s and unloading");
}

#[test]
fn the_image_is_built_with_the_compiler_of_the_workspace() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let toolchain = fs::read_to_string(root.join("rust-toolchain.toml")).unwrap();
    let version = field(&toolchain, "channel = ");
    let image = deployed("Containerfile");
    let image = field(&image, "FROM docker.io/library/rust:");
    assert!(version.starts_with(image.split('-').next().unwrap()), "{version} and {image}");
}
