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
    let rows: Vec<Row> = serde_json::from_str(ROWS).context("the table of answers is broken")?;
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
