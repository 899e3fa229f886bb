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
    model::CacheType,
    session::{DeviceSampling, Session, SessionOptions},
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
/// Most tokens of an answer in such a row.
const LENGTH: usize = 16;
/// An answer in such a row ends before the first token whose logit is less than this above the second best: devices round differently,
/// by up to 1e-3 per logit, so that ten times the sum for two logits decides for the same token everywhere.
const CLEAR: f32 = 2e-2;

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

/// What the table says about a model.
pub(super) enum Outcome {
    /// Its answers are those of the reference; what was compared.
    Equal(String),
    /// The table has no row for the file; the row to contribute, as JSON.
    Unknown(String),
}

/// Compares the answers of the file with this checksum with those of the table.
///
/// # Errors
/// If an answer differs.
pub(super) fn check(model: &Model, name: &str, sha256: &str) -> Result<Outcome> {
    check_with(ROWS, model, name, sha256)
}

fn check_with(table: &str, model: &Model, name: &str, sha256: &str) -> Result<Outcome> {
    let rows: Vec<Row> = serde_json::from_str(table).context("the table of answers is broken")?;
    let Some(row) = rows.iter().find(|row| row.sha256 == sha256) else {
        return Ok(Outcome::Unknown(serde_json::to_string(&row_of(model, name, sha256)?)?));
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
    Ok(Outcome::Equal(format!("{}: {tokens} tokens of {count} answers, on {device}", row.model)))
}

fn row_of(model: &Model, name: &str, sha256: &str) -> Result<Row> {
    let mut answers = Vec::new();
    for question in QUESTIONS {
        let messages = vec![Message::new("user", question)];
        let conversation = Conversation { messages, ..Conversation::default() };
        let prompt = prompt_of(model, &conversation, ChatOptions::default())?.tokens;
        let greedy = clear(model, &prompt)?;
        if !greedy.is_empty() {
            answers.push(Answer { prompt, greedy });
        }
    }
    if answers.is_empty() {
        bail!(
            "no answers are known for this file, and it has no clear ones: the best two first tokens are equally likely"
        );
    }
    Ok(Row { model: name.into(), sha256: sha256.into(), answers })
}

/// A session with this prompt, room for so many tokens, and exact (f32) KV caches.
fn session(model: &Model, prompt: &[u32], length: usize) -> Result<Session> {
    let context = Some(prompt.len() + length + 1);
    let options = SessionOptions { context, cache: CacheType::F32, ..SessionOptions::default() };
    let mut session = model.session(&options)?;
    session.extend(prompt)?;
    Ok(session)
}

/// The greedy tokens after a prompt, as far as they are clear.
fn clear(model: &Model, prompt: &[u32]) -> Result<Vec<u32>> {
    let mut session = session(model, prompt, LENGTH)?;
    let mut tokens = Vec::new();
    while tokens.len() < LENGTH {
        let logits = block_on(session.logits())?;
        let Some((best, margin)) = best(&logits) else { break };
        if margin < CLEAR {
            break;
        }
        tokens.push(best);
        session.extend(&[best])?;
    }
    Ok(tokens)
}

/// The token with the largest logit, and how far that is above the second largest.
fn best(logits: &[f32]) -> Option<(u32, f32)> {
    let (token, first) = logits.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?;
    let others = logits.iter().enumerate().filter(|(i, _)| *i != token);
    let second = others.map(|(_, logit)| *logit).max_by(f32::total_cmp)?;
    Some((u32::try_from(token).ok()?, first - second))
}

fn greedy(model: &Model, prompt: &[u32], length: usize) -> Result<Vec<u32>> {
    let mut session = session(model, prompt, length)?;
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
        let Outcome::Unknown(row) = check_with("[]", &model, "m", sha256).unwrap() else {
            panic!("the table is empty")
        };
        let Outcome::Equal(checked) = check_with(&format!("[{row}]"), &model, "m", sha256).unwrap()
        else {
            panic!("the row is in the table")
        };
        let mut changed: Row = serde_json::from_str(&row).unwrap();
        let lengths: Vec<usize> = changed.answers.iter().map(|a| a.greedy.len()).collect();
        let (tokens, count) = (lengths.iter().sum::<usize>(), lengths.len());
        assert!(checked.contains(&format!("{tokens} tokens of {count} answers")), "{checked}");
        let last = lengths[0] - 1;
        changed.answers[0].greedy[last] ^= 1;
        let table = serde_json::to_string(&[changed]).unwrap();
        let Err(error) = check_with(&table, &model, "m", sha256) else {
            panic!("another token was expected")
        };
        let error = error.to_string();
        assert!(error.contains("answer 0") && error.contains(&format!("token {last}")), "{error}");
    }

    #[test]
    fn a_row_ends_where_tokens_are_not_clear() {
        assert_eq!(best(&[0.0, 3.0, 1.0, 2.5]), Some((1, 0.5)));
        assert_eq!(best(&[1.0]), None);
        let model = model();
        let prompt = [7, 20, 33];
        let tokens = clear(&model, &prompt).unwrap();
        let mut session = session(&model, &prompt, LENGTH).unwrap();
        for token in &tokens {
            let (found, margin) = best(&block_on(session.logits()).unwrap()).unwrap();
            assert!(found == *token && margin >= CLEAR, "{token}: {found}, {margin}");
            session.extend(&[*token]).unwrap();
        }
        if tokens.len() < LENGTH {
            let (_, margin) = best(&block_on(session.logits()).unwrap()).unwrap();
            assert!(margin < CLEAR, "{margin}");
        }
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
