//! Models at a URL.

use rullama_gguf::DType;
use rullama_testkit::golden;
use serde_json::json;

use crate::{
    models::{MICRO, golden_arg, small_file},
    program::{has, rullama},
    server::{Manner, Server},
};

#[test]
fn only_the_header_is_transferred() {
    // A large tensor after a short header, of which nothing should be fetched.
    let bulk = vec![0; 8 << 20];
    let file = small_file().tensor("bulk", &[1 << 21, 1], DType::F32, bulk).finish().unwrap();
    let server = Server::start(Manner::Ranges, file);
    let output = rullama(["show", &server.url(), "--json", "--tensors"]).json();
    assert_eq!(output["name"], "Small");
    assert_eq!(output["tensors"].as_array().unwrap().len(), 3);
    assert_eq!(output["source"], json!({ "kind": "url", "url": server.url() }));
    assert!(server.sent() < 1 << 20, "{} bytes for a header of a few hundred", server.sent());
}

#[test]
fn every_command_takes_a_url() {
    let server = Server::start(Manner::Ranges, golden(MICRO));
    let url = server.url();
    let here = golden_arg(MICRO);
    let same = |args: &dyn Fn(&str) -> Vec<String>| {
        assert_eq!(rullama(args(&url)).stdout(), rullama(args(&here)).stdout());
    };
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    same(&|model| words(&["tokenize", model, "--json", "The quick brown fox"]));
    same(&|model| words(&["detokenize", model, "602", "111"]));
    has(&rullama(["show", &url]).stdout(), &["Micro E2B", &url]);
    has(&rullama(["verify", &url]).stdout(), &["structure", "99 tensors"]);
}

#[test]
fn servers_without_ranges_are_a_network_failure() {
    let server = Server::start(Manner::Whole, golden(MICRO));
    for command in ["show", "verify"] {
        let error = rullama([command, &server.url()]).fails(5);
        has(&error, &[&server.url(), "range requests"]);
    }
}

#[test]
fn web_pages_are_refused() {
    let server = Server::start(Manner::Page, vec![]);
    has(&rullama(["show", &server.url()]).fails(5), &[&server.url(), "page"]);
}

#[test]
fn missing_urls_are_not_found() {
    let server = Server::start(Manner::Missing, vec![]);
    has(&rullama(["tokenize", &server.url(), "x"]).fails(3), &[&server.url(), "404"]);
}

#[test]
fn invalid_files_at_a_url_are_refused() {
    let server = Server::start(Manner::Ranges, b"this is not a model, not even a bit".to_vec());
    has(&rullama(["show", &server.url()]).fails(4), &[&server.url(), "not a GGUF file"]);
}

#[test]
fn passwords_are_not_repeated() {
    let server = Server::start(Manner::Ranges, golden(MICRO));
    let url = server.url().replace("http://", "http://me:secret@");
    for flags in [&[][..], &["--json"]] {
        let text = rullama(["show", &url]).and(flags).stdout();
        assert!(!text.contains("secret"), "{text}");
    }
    let missing = Server::start(Manner::Missing, vec![]);
    let url = missing.url().replace("http://", "http://me:secret@");
    assert!(!rullama(["show", &url]).fails(3).contains("secret"));
}

#[test]
fn invalid_urls_are_refused() {
    rullama(["show", "http://"]).fails(1);
    rullama(["show", "https://exa mple/x.gguf"]).fails(1);
}
