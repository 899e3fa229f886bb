//! Ctrl-C in a chat: the answer stops, the chat goes on.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, Command},
};

use crate::{
    models::{TINY, golden_arg},
    program::{has, rullama},
};

/// What Ctrl-C on a terminal does to a program.
fn press(child: &Child) {
    let pid = child.id().to_string();
    let status = Command::new("kill").args(["-INT", &pid]).status().expect("kill is everywhere");
    assert!(status.success());
}

#[test]
fn ctrl_c_stops_the_answer_and_keeps_the_chat() {
    let model = golden_arg(TINY);
    // The best tokens of this model repeat themselves, so that the answer does not end before the context does.
    let mut program = rullama([
        "run",
        &model,
        "--device",
        "cpu",
        "--chat",
        "--temperature",
        "0",
        "--ctx",
        "4096",
    ]);
    let mut child = program.spawn();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdin.write_all(b"Hello\n").unwrap();
    let mut beginning = [0; 8];
    stdout.read_exact(&mut beginning).unwrap();
    press(&child);
    let mut rest = Vec::new();
    stdout.read_until(b'\n', &mut rest).unwrap();

    stdin.write_all(b"/set parameter num_predict 5\nAgain\n/show info\n/bye\n").unwrap();
    drop(stdin);
    let mut after = String::new();
    stdout.read_to_string(&mut after).unwrap();
    let mut lines = after.lines();
    assert_eq!(lines.next(), Some("Set num_predict to 5."), "{after}");
    assert!(lines.next().is_some_and(|answer| !answer.is_empty()), "{after}");
    has(&after, &["messages       4"]);
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{errors}");
    has(&errors, &["stopped"]);
}
