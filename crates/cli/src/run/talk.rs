//! The loop of a chat: read, do or answer, again.

use std::{
    io::{self, IsTerminal},
    path::Path,
};

use anyhow::Result;
use rullama::{Finish, MediaFile};
use serde_json::Value;

use super::{
    answer::Answer,
    command::{self, Command, HELP, Setting, Topic},
    dropped::{Dropped, begins_with_file, dropped},
    input::{self, Input, Lines},
    screen::Screen,
};
use crate::{
    exit, interrupt,
    output::{OutputClosed, note, print},
};

/// A conversation: with a model that is loaded here, or with one of a server.
pub(super) trait Conversation {
    /// What a chat begins with.
    fn greeting(&self) -> String;
    /// Sends a message with images and audio before its text, and shows the reply. After an error the conversation is as before.
    fn say(&mut self, text: &str, files: &[MediaFile], screen: &mut Screen) -> Result<Answer>;
    /// Continues a text as it is.
    fn complete(&mut self, text: &str, screen: &mut Screen) -> Result<Answer>;
    /// Tells what people want to know after a reply.
    fn report(&self, answer: &Answer);
    /// What `--json` prints of a reply besides what every conversation has.
    fn figures(&self, answer: &Answer) -> Value;
    /// Changes a setting.
    fn set(&mut self, setting: Setting) -> Result<()>;
    /// Something about the model or the conversation.
    fn show(&self, topic: Topic) -> Result<String>;
    /// Forgets what was said.
    fn clear(&mut self);
    /// Writes the conversation to a file.
    fn save_to(&mut self, file: &Path) -> Result<()>;
    /// Continues a conversation of a file, and returns the number of its messages; if it cannot, nothing changes.
    fn load_from(&mut self, file: &Path) -> Result<usize>;
}

/// Talks until the user leaves.
pub(super) fn talk(
    chat: &mut dyn Conversation,
    lines: &mut dyn Lines,
    screen: &mut Screen,
) -> Result<()> {
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
fn turn(chat: &mut dyn Conversation, text: &str, screen: &mut Screen) -> Result<bool> {
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

fn say(chat: &mut dyn Conversation, text: &str, screen: &mut Screen) -> Result<()> {
    let Dropped { text, files, missing } = dropped(text);
    for path in missing {
        note(&format!("no file {path}; sending the path as text"));
    }
    let answer = chat.say(&text, &files, screen)?;
    screen.end()?;
    if answer.done.finish == Finish::Cancelled {
        note("stopped");
    }
    chat.report(&answer);
    // On a terminal the next prompt stands apart.
    if io::stdout().is_terminal() { print("\n") } else { Ok(()) }
}

fn obey(chat: &mut dyn Conversation, command: Command) -> Result<()> {
    match command {
        Command::Help => print(HELP),
        Command::Clear => {
            chat.clear();
            print("Conversation cleared.\n")
        }
        Command::Set(setting) => {
            let confirmation = setting.confirmation();
            chat.set(setting)?;
            print(&confirmation)
        }
        Command::Show(topic) => print(&chat.show(topic)?),
        Command::Save(file) => {
            chat.save_to(&file)?;
            print(&format!("Saved to {}.\n", file.display()))
        }
        Command::Load(file) => {
            let count = chat.load_from(&file)?;
            print(&format!("Loaded {count} messages from {}.\n", file.display()))
        }
        Command::Bye => Ok(()),
    }
}
