//! The loop of a chat: read, do or answer, again.

use std::io::{self, IsTerminal};

use anyhow::Result;
use rullama::{Finish, SavedSession};

use super::{
    chat::Chat,
    command::{self, Command, HELP},
    dropped::{Dropped, begins_with_file, dropped},
    input::{self, Input, Lines},
    screen::Screen,
};
use crate::{
    exit, interrupt,
    output::{OutputClosed, note, print},
    output_file::OutputFile,
};

/// Talks until the user leaves.
pub(super) fn talk(chat: &mut Chat, lines: &mut dyn Lines, screen: &mut Screen) -> Result<()> {
    if io::stdout().is_terminal() {
        print(&chat.greeting())?;
    }
    let mut leaving = false;
    loop {
        interrupt::clear();
        match input::message(lines)? {
            Input::Text(text) => {
                leaving = false;
                if !turn(chat, &text, screen)? {
                    return Ok(());
                }
            }
            Input::Interrupted if !leaving => {
                leaving = true;
                note("press Ctrl-C again, Ctrl-D or type /bye to exit");
            }
            Input::Interrupted | Input::End => return Ok(()),
        }
    }
}

/// Does what a message says; false if it says to leave. What fails is told, and the chat goes on.
fn turn(chat: &mut Chat, text: &str, screen: &mut Screen) -> Result<bool> {
    // A dropped path may begin as commands do.
    let command = if begins_with_file(text) { None } else { command::parse(text) };
    let done = match command {
        None if text.trim().is_empty() => Ok(()),
        None => say(chat, text, screen),
        Some(Err(explanation)) => {
            note(&explanation);
            Ok(())
        }
        Some(Ok(Command::Bye)) => return Ok(false),
        Some(Ok(command)) => obey(chat, command),
    };
    if let Err(error) = done {
        if error.is::<OutputClosed>() {
            return Err(error);
        }
        screen.end()?;
        note(&exit::message(&error));
    }
    Ok(true)
}

fn say(chat: &mut Chat, text: &str, screen: &mut Screen) -> Result<()> {
    let Dropped { text, files, missing } = dropped(text);
    for path in missing {
        note(&format!("no file {path}; sending the path as text"));
    }
    let answer = chat.say(&text, &files, screen)?;
    screen.end()?;
    if answer.done.finish == Finish::Cancelled {
        note("stopped");
    }
    chat.report(&answer, chat.verbose);
    // On a terminal the next prompt stands apart.
    if io::stdout().is_terminal() { print("\n") } else { Ok(()) }
}

fn obey(chat: &mut Chat, command: Command) -> Result<()> {
    match command {
        Command::Help => print(HELP),
        Command::Clear => {
            chat.clear();
            print("Conversation cleared.\n")
        }
        Command::Set(setting) => print(&chat.set(setting)?),
        Command::Show(topic) => print(&chat.show(topic)?),
        Command::Save(file) => {
            let mut out = OutputFile::create(&file)?;
            chat.save()?.write(&mut out)?;
            out.finish()?;
            print(&format!("Saved to {}.\n", file.display()))
        }
        Command::Load(file) => {
            let saved = SavedSession::read_file(&file)?;
            let count = saved.messages.len();
            chat.load(saved)?;
            print(&format!("Loaded {count} messages from {}.\n", file.display()))
        }
        Command::Bye => Ok(()),
    }
}
