//! Lines of a chat that begin with a slash.

use std::path::PathBuf;

use serde_json::Value;

use rullama::Format;

use super::{format, sampling};

/// What `/help` says.
pub(super) const HELP: &str = "\
/set system TEXT             set the system message; use \"\"\" around several lines
/set think | nothink         turn thinking on or off
/set format json | SCHEMA    constrain replies to JSON or a JSON schema; /set noformat turns it off
/set verbose | quiet         show or hide timings after each reply
/set parameter NAME VALUE    set an option, such as temperature 0.5 or num_ctx 8192
/show info | parameters | system | template
/save FILE                   save the conversation and its KV cache
/load FILE                   load a saved conversation
/clear                       clear the conversation
/bye                         exit (or Ctrl-D)

Use \"\"\" to begin and end a message of several lines. Ctrl-C stops a reply.
To send images or audio, put their paths in a message or drop the files here.
";

/// A line that is not for the model.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Command {
    Help,
    Clear,
    Bye,
    Set(Setting),
    Show(Topic),
    Save(PathBuf),
    Load(PathBuf),
}

/// What `/set` changes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Setting {
    System(String),
    Think(bool),
    Verbose(bool),
    Format(Option<Format>),
    Parameter(String, Value),
}

impl Setting {
    /// What is said once it is changed.
    pub(super) fn confirmation(&self) -> String {
        let state = |on: bool| if on { "on" } else { "off" };
        match self {
            Self::System(text) if text.is_empty() => "Removed the system message.\n".into(),
            Self::System(_) => "Set the system message.\n".into(),
            Self::Think(on) => format!("Thinking is {}.\n", state(*on)),
            Self::Verbose(on) => format!("Timings are {}.\n", state(*on)),
            Self::Format(None) => "Replies are not constrained.\n".into(),
            Self::Format(Some(_)) => "Replies are constrained to JSON.\n".into(),
            Self::Parameter(name, value) if name == "num_ctx" => {
                format!("Set the context to {value} tokens.\n")
            }
            Self::Parameter(name, value) => format!("Set {name} to {value}.\n"),
        }
    }
}

/// What `/show` shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Topic {
    Info,
    Parameters,
    System,
    Template,
}

/// Reads a command; `None` where the line is for the model, an explanation where the command is wrong.
pub(super) fn parse(line: &str) -> Option<Result<Command, String>> {
    let line = line.trim();
    if !line.starts_with('/') {
        return None;
    }
    let (name, rest) = first_word(line);
    Some(match name {
        "/help" | "/?" => Ok(Command::Help),
        "/clear" => Ok(Command::Clear),
        "/bye" | "/exit" | "/quit" => Ok(Command::Bye),
        "/set" => setting(rest).map(Command::Set),
        "/show" => topic(rest).map(Command::Show),
        "/save" => file(name, rest).map(Command::Save),
        "/load" => file(name, rest).map(Command::Load),
        _ => Err(format!("unknown command {name}; /help lists all commands")),
    })
}

fn first_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

fn setting(text: &str) -> Result<Setting, String> {
    const USAGE: &str = "/set takes system TEXT, think, nothink, format json, noformat, verbose, quiet, or parameter NAME VALUE";
    let (name, rest) = first_word(text);
    match (name, rest.is_empty()) {
        ("system", _) => Ok(Setting::System(unquoted(rest).into())),
        ("think", true) => Ok(Setting::Think(true)),
        ("nothink", true) => Ok(Setting::Think(false)),
        ("format", false) => format::parse(rest).map(|format| Setting::Format(Some(format))),
        ("noformat", true) => Ok(Setting::Format(None)),
        ("verbose", true) => Ok(Setting::Verbose(true)),
        ("quiet", true) => Ok(Setting::Verbose(false)),
        ("parameter", false) => {
            let (name, rest) = first_word(rest);
            if rest.is_empty() {
                return Err(USAGE.into());
            }
            Ok(Setting::Parameter(name.into(), parameter(name, rest)))
        }
        _ => Err(USAGE.into()),
    }
}

/// Texts that end an answer are a list, the only one people set by hand.
fn parameter(name: &str, text: &str) -> Value {
    match sampling::value(text) {
        list @ Value::Array(_) => list,
        Value::String(text) if name == "stop" => text.split_whitespace().collect(),
        value if name == "stop" => vec![text_of(&value)].into(),
        value => value,
    }
}

fn text_of(value: &Value) -> Value {
    value.as_str().map_or_else(|| value.to_string().into(), Into::into)
}

fn topic(text: &str) -> Result<Topic, String> {
    match text {
        "info" => Ok(Topic::Info),
        "parameters" => Ok(Topic::Parameters),
        "system" => Ok(Topic::System),
        "template" => Ok(Topic::Template),
        _ => Err("/show takes info, parameters, system or template".into()),
    }
}

fn file(name: &str, text: &str) -> Result<PathBuf, String> {
    if text.is_empty() { Err(format!("{name} needs a file name")) } else { Ok(text.into()) }
}

/// Text without the quotes people put around it.
pub(super) fn unquoted(text: &str) -> &str {
    for quotes in ["\"\"\"", "\""] {
        let inner = text.strip_prefix(quotes).and_then(|text| text.strip_suffix(quotes));
        if let Some(inner) = inner {
            return inner.trim_matches('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn commands() {
        let system = |text: &str| Command::Set(Setting::System(text.into()));
        let parameter =
            |name: &str, value: Value| Command::Set(Setting::Parameter(name.into(), value));
        for (line, command) in [
            ("/help", Command::Help),
            (" /? ", Command::Help),
            ("/bye", Command::Bye),
            ("/exit", Command::Bye),
            ("/clear", Command::Clear),
            ("/set system Be  brief.", system("Be  brief.")),
            ("/set system \"Be brief.\"", system("Be brief.")),
            ("/set system \"\"\"Be\nbrief.\"\"\"", system("Be\nbrief.")),
            ("/set system", system("")),
            ("/set think", Command::Set(Setting::Think(true))),
            ("/set nothink", Command::Set(Setting::Think(false))),
            ("/set verbose", Command::Set(Setting::Verbose(true))),
            ("/set format json", Command::Set(Setting::Format(Some(Format::Json)))),
            ("/set noformat", Command::Set(Setting::Format(None))),
            ("/set quiet", Command::Set(Setting::Verbose(false))),
            ("/set parameter temperature 0.5", parameter("temperature", json!(0.5))),
            ("/set parameter top_k 7", parameter("top_k", json!(7))),
            ("/set parameter stop END", parameter("stop", json!(["END"]))),
            ("/set parameter stop \"a b\"", parameter("stop", json!(["a", "b"]))),
            ("/set parameter stop [\"a b\"]", parameter("stop", json!(["a b"]))),
            ("/set parameter stop 1", parameter("stop", json!(["1"]))),
            ("/show info", Command::Show(Topic::Info)),
            ("/show parameters", Command::Show(Topic::Parameters)),
            ("/show system", Command::Show(Topic::System)),
            ("/show template", Command::Show(Topic::Template)),
            ("/save my chat.bin", Command::Save("my chat.bin".into())),
            ("/load x", Command::Load("x".into())),
        ] {
            assert_eq!(parse(line), Some(Ok(command)), "{line}");
        }
    }

    #[test]
    fn what_is_no_command() {
        for line in ["hello", "", "1/2", "\"\"\"/bye\"\"\""] {
            assert_eq!(parse(line), None, "{line}");
        }
        for (line, part) in [
            ("/sing", "/sing"),
            ("/", "/help"),
            ("/set", "parameter NAME VALUE"),
            ("/set think deeply", "nothink"),
            ("/set format", "format json"),
            ("/set format yaml", "JSON schema"),
            ("/set parameter", "NAME VALUE"),
            ("/set parameter seed", "NAME VALUE"),
            ("/show", "template"),
            ("/show me", "template"),
            ("/save", "file"),
            ("/load ", "file"),
        ] {
            let error = parse(line).expect("a command").expect_err("a wrong one");
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
