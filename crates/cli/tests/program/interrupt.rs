//! Ctrl-C and closed pipes: what stops, what continues, and the exit code.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, Command},
    time::Duration,
};

use crate::{
    models::{TINY, golden_arg},
    program::{has, rullama},
};

/// Sends SIGINT, as Ctrl-C on a terminal does.
pub(crate) fn press(child: &Child) {
    let pid = child.id().to_string();
    let status = Command::new("kill").args(["-INT", &pid]).status().expect("kill is everywhere");
    assert!(status.success());
}

/// Waits until the program handles Ctrl-C; before, it would end by the signal.
pub(crate) fn wait_for_handler(child: &Child) {
    // The bit of signal 2, SIGINT.
    const SIGINT: u64 = 1 << 1;
    if cfg!(not(target_os = "linux")) {
        return std::thread::sleep(Duration::from_secs(2));
    }
    for _ in 0..6000 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        if u64::from_str_radix(caught.trim(), 16).unwrap() & SIGINT != 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the program does not handle Ctrl-C");
}

#[test]
fn ctrl_c_stops_the_reply_and_keeps_the_chat() {
    let model = golden_arg(TINY);
    // Greedy output of this model repeats, so that the reply does not end before the context is full.
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
    assert!(lines.next().is_some_and(|reply| !reply.is_empty()), "{after}");
    has(&after, &["messages       4"]);
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{errors}");
    has(&errors, &["stopped"]);
}

/// Before a command watches for it, Ctrl-C ends the program with the documented code, not by a signal.
#[test]
fn ctrl_c_while_the_prompt_is_read() {
    let mut program = rullama(["run", &golden_arg(TINY), "--device", "cpu"]);
    let mut child = program.spawn();
    // The program reads standard input to its end. Keep it open: waiting for a child would close it.
    let stdin = child.stdin.take();
    wait_for_handler(&child);
    press(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(stdin);
}

#[test]
fn ctrl_c_ends_a_single_reply() {
    let model = golden_arg(TINY);
    let options = ["--temperature", "0", "--ctx", "4096", "--device", "cpu"];
    let mut program = rullama(["run", &model, "Hello"]).and(options);
    let mut child = program.spawn();
    drop(child.stdin.take());
    let mut beginning = [0; 8];
    child.stdout.as_mut().unwrap().read_exact(&mut beginning).unwrap();
    press(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// A closed reader (`| head -c 1`) ends generation on a GPU; the device is released before the process exits.
#[test]
fn a_closed_pipe_ends_a_reply() {
    let model = golden_arg(TINY);
    let options = ["--temperature", "0", "--ctx", "512", "--device", "gpu"];
    let mut program = rullama(["run", &model, "Hello"]).and(options);
    let mut child = program.spawn();
    drop(child.stdin.take());
    let mut beginning = [0; 8];
    child.stdout.as_mut().unwrap().read_exact(&mut beginning).unwrap();
    drop(child.stdout.take());
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!((child.wait().unwrap().code(), errors.as_str()), (Some(0), ""));
}

/// Names in a folder.
fn names(folder: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn ctrl_c_leaves_no_part_file() {
    let folder = tempfile::TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    // Enough tokens that the program still runs when the part file is seen.
    std::fs::write(at("ids.json"), format!("{:?}", vec![5; 4000])).unwrap();
    let mut program = rullama(["eval", &golden_arg(TINY), "--device", "cpu"]).and([
        "--ids-file",
        &at("ids.json"),
        "--out",
        &at("out.safetensors"),
    ]);
    let mut child = program.spawn();
    while !names(folder.path()).iter().any(|name| name.ends_with(".part")) {
        assert!(child.try_wait().unwrap().is_none(), "it ended before there was a part file");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    press(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(names(folder.path()), ["ids.json"]);
}
