//! `rullama verify --answers`: does this build, on this device, continue prompts as a reference does?
//!
//! `answers.json` lists published files by their checksum, with prompts as token ids and the tokens that follow greedily, as far as the
//! reference's best logit is clearly above its second best.

use anyhow::{Context, Result, bail};
use pollster::block_on;
use rullama_chat::{Conversation, Message};
use rullama_runtime::{
    Model,
    generate::{ChatOptions, prompt_of},
    session::{DeviceSampling, SessionOptions},
};
use serde::{Deserialize, Serialize};

/// Published files, one row each.
const ROWS: &str = include_str!("answers.json");
/// What a row for another file is made from.
const QUESTIONS: [&str; 3] = [
    "What is the capital of France?",
    "Write a short poem about the sea.",
    "List the first five prime numbers.",
];
/// Tokens of an answer in such a row.
const LENGTH: usize = 16;

/// A file and what it answers.
#[derive(Debug, Deserialize, Serialize)]
struct Row {
    model: String,
    sha256: String,
    answers: Vec<Answer>,
}

/// Token ids: a prompt, and what follows greedily.
#[derive(Debug, Deserialize, Serialize)]
struct Answer {
    prompt: Vec<u32>,
    greedy: Vec<u32>,
}

/// Checks the answers of the file with this checksum; gives what was checked.
///
/// # Errors
/// If the file is not in the table, or an answer is another one.
pub(super) fn check(model: &Model, name: &str, sha256: &str) -> Result<String> {
    check_with(ROWS, model, name, sha256)
}

fn check_with(table: &str, model: &Model, name: &str, sha256: &str) -> Result<String> {
    let rows: Vec<Row> = serde_json::from_str(table).context("the table of answers is broken")?;
    let Some(row) = rows.iter().find(|row| row.sha256 == sha256) else {
        let row = row_of(model, name, sha256)?;
        bail!(
            "no answers are known for this file. If it is a published one and its answers are right, add this row to\n\
             crates/cli/src/verify/answers.json and open a pull request:\n{}",
            serde_json::to_string(&row)?
        );
    };
    for (i, answer) in row.answers.iter().enumerate() {
        let found = greedy(model, &answer.prompt, answer.greedy.len())?;
        if found != answer.greedy {
            let at = found.iter().zip(&answer.greedy).take_while(|(a, b)| a == b).count();
            bail!(
                "answer {i} differs from the reference at token {at}: {:?} instead of {:?}. The file is the published one, so this \
                 build or this device ({}) computes wrongly; please report it",
                found.get(at),
                answer.greedy.get(at),
                model.device().name()
            );
        }
    }
    let tokens: usize = row.answers.iter().map(|answer| answer.greedy.len()).sum();
    let (count, device) = (row.answers.len(), model.device().name());
    Ok(format!("{}: {tokens} tokens of {count} answers, on {device}", row.model))
}

fn row_of(model: &Model, name: &str, sha256: &str) -> Result<Row> {
    let mut answers = Vec::new();
    for question in QUESTIONS {
        let messages = vec![Message::new("user", question)];
        let conversation = Conversation { messages, ..Conversation::default() };
        let prompt = prompt_of(model, &conversation, ChatOptions::default())?.tokens;
        answers.push(Answer { greedy: greedy(model, &prompt, LENGTH)?, prompt });
    }
    Ok(Row { model: name.into(), sha256: sha256.into(), answers })
}

fn greedy(model: &Model, prompt: &[u32], length: usize) -> Result<Vec<u32>> {
    let context = Some(prompt.len() + length + 1);
    let mut session = model.session(&SessionOptions { context, ..SessionOptions::default() })?;
    session.extend(prompt)?;
    let mut tokens = Vec::new();
    while tokens.len() < length {
        let Some(next) = block_on(session.next(DeviceSampling::Greedy))? else { break };
        tokens.push(next);
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use std::{ops::ControlFlow, rc::Rc};

    use rullama_engine::executor::Device;
    use rullama_gguf::Gguf;
    use rullama_runtime::model::LoadOptions;
    use rullama_source::MemorySource;
    use rullama_testkit::golden;

    use super::*;

    fn model() -> Model {
        let source = MemorySource::new("m.gguf", golden("gguf/micro-llama-Q4_1.gguf"));
        let gguf = block_on(Gguf::open(Rc::new(source))).unwrap();
        let mut go_on = |_| ControlFlow::Continue(());
        block_on(Model::load(gguf, Device::Cpu, &LoadOptions::default(), &mut go_on)).unwrap()
    }

    #[test]
    fn known_answers_pass_and_others_are_told_apart() {
        let (model, sha256) = (model(), "00");
        let unknown = check_with("[]", &model, "m", sha256).unwrap_err().to_string();
        let row = unknown.lines().last().unwrap();
        let checked = check_with(&format!("[{row}]"), &model, "m", sha256).unwrap();
        assert!(checked.contains("48 tokens of 3 answers"), "{checked}");
        let mut changed: Row = serde_json::from_str(row).unwrap();
        changed.answers[1].greedy[2] ^= 1;
        let table = serde_json::to_string(&[changed]).unwrap();
        let error = check_with(&table, &model, "m", sha256).unwrap_err().to_string();
        assert!(error.contains("answer 1") && error.contains("token 2"), "{error}");
    }

    #[test]
    fn the_table_is_sound() {
        let rows: Vec<Row> = serde_json::from_str(ROWS).unwrap();
        for row in rows {
            assert_eq!(row.sha256.len(), 64, "{}", row.model);
            let said = |answer: &Answer| !answer.prompt.is_empty() && !answer.greedy.is_empty();
            assert!(row.answers.iter().all(said), "{}", row.model);
        }
    }
}
