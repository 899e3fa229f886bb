//! One line of data: a conversation, a prompt with its completion, a text, or token ids.

use rullama_chat::{Conversation, Message};
use rullama_runtime::{
    Model, RuntimeError,
    generate::{ChatOptions, prompt_of},
};
use rullama_tokenizer::{Special, Tokenizer};
use serde_json::{Map, Value};

use super::{DataOptions, Example};
use crate::error::LineError;

/// Parses a line into an example.
pub(super) fn example(
    model: &Model,
    line: &str,
    options: DataOptions,
) -> Result<Example, LineError> {
    let value: Value = serde_json::from_str(line)?;
    let Value::Object(fields) = value else { return Err(LineError::Unknown) };
    let example = if fields.contains_key("messages") {
        conversation(model, &Conversation::from_json(line).map_err(RuntimeError::from)?)?
    } else if fields.contains_key("prompt") || fields.contains_key("completion") {
        let (prompt, completion) = (text(&fields, "prompt")?, text(&fields, "completion")?);
        if options.raw {
            joined(model.tokenizer()?, prompt, completion)
        } else {
            let messages =
                vec![Message::new("user", prompt), Message::new("assistant", completion)];
            conversation(model, &Conversation { messages, ..Conversation::default() })?
        }
    } else if fields.contains_key("text") {
        joined(model.tokenizer()?, "", text(&fields, "text")?)
    } else if fields.contains_key("ids") {
        tokens(&fields, model.config().vocabulary)?
    } else {
        return Err(LineError::Unknown);
    };
    if example.targets() == 0 {
        let prompt = example.ids.len();
        return Err(LineError::Empty { tokens: prompt, prompt });
    }
    Ok(example)
}

fn text<'a>(fields: &'a Map<String, Value>, field: &'static str) -> Result<&'a str, LineError> {
    let value = fields.get(field).and_then(Value::as_str);
    value.ok_or(LineError::Field { field, wanted: "a string" })
}

/// `learned` after `given`, in one sequence that ends with the end token; the tokens of `learned` are targets.
fn joined(tokenizer: &Tokenizer, given: &str, learned: &str) -> Example {
    let mut ids: Vec<u32> = tokenizer.begin().into_iter().collect();
    ids.extend(tokenizer.encode(given, Special::None));
    let given = ids.len();
    ids.extend(tokenizer.encode(learned, Special::None));
    ids.extend(tokenizer.eos());
    Example::after_prompt(ids, given)
}

/// `{"ids": [...], "n_prompt": k}`: tokens after the first `k` are targets.
fn tokens(fields: &Map<String, Value>, vocabulary: usize) -> Result<Example, LineError> {
    let wrong = || LineError::Field { field: "ids", wanted: "a list of token ids" };
    let ids = fields.get("ids").and_then(Value::as_array).ok_or_else(wrong)?;
    let id = |value: &Value| {
        let id = value.as_u64().ok_or_else(wrong)?;
        let known = u32::try_from(id).ok().filter(|id| (*id as usize) < vocabulary);
        known.ok_or(LineError::NoSuchToken { id, count: vocabulary })
    };
    let ids: Vec<u32> = ids.iter().map(id).collect::<Result<_, _>>()?;
    let wanted = "the number of prompt tokens, below the number of ids";
    let given = match fields.get("n_prompt") {
        None => Some(1),
        Some(value) => value.as_u64().and_then(|given| usize::try_from(given).ok()),
    };
    let given = given.ok_or(LineError::Field { field: "n_prompt", wanted })?;
    if given >= ids.len() {
        return Err(LineError::Empty { tokens: ids.len(), prompt: given });
    }
    Ok(Example::after_prompt(ids, given))
}

/// A conversation in the model's chat template: the assistant's turns are targets, including the token that ends each.
fn conversation(model: &Model, conversation: &Conversation) -> Result<Example, LineError> {
    let roles = |message: &Message| matches!(message.role.as_str(), "assistant" | "model");
    let turns: Vec<usize> =
        (0..conversation.messages.len()).filter(|i| roles(&conversation.messages[*i])).collect();
    let last = *turns.last().ok_or(LineError::NoAssistant)?;
    let rendered = |count: usize, generation: bool| -> Result<Vec<u32>, LineError> {
        let messages = conversation.messages[..count].to_vec();
        let part =
            Conversation { messages, add_generation_prompt: generation, ..conversation.clone() };
        Ok(prompt_of(model, &part, ChatOptions::default())?.tokens)
    };
    let whole = rendered(last + 1, false)?;
    let mut learned = vec![false; whole.len()];
    for turn in &turns {
        let (prompt, with_reply) = (rendered(*turn, true)?, rendered(turn + 1, false)?);
        // A generation prompt may contain text that the template omits once the reply follows.
        let (first, end) = (common(&prompt, &whole), common(&with_reply, &whole));
        learned[first..end.max(first)].fill(true);
    }
    let tokenizer = model.tokenizer()?;
    only_up_to_ends(&mut learned, &whole, tokenizer);
    // The last reply follows the generation prompt, as in inference.
    let prompt = rendered(last, true)?;
    let first = common(&prompt, &whole);
    let ids: Vec<u32> = prompt.iter().chain(&whole[first..]).copied().collect();
    let mut all = learned[..first].to_vec();
    all.resize(prompt.len(), false);
    all.extend(&learned[first..]);
    Ok(Example::new(ids, all))
}

/// Removes targets after a turn's end token: the template writes them, not the model.
fn only_up_to_ends(learned: &mut [bool], ids: &[u32], tokenizer: &Tokenizer) {
    let mut end = learned.len();
    while end > 0 {
        let first = learned[..end].iter().rposition(|learned| !learned).map_or(0, |i| i + 1);
        let end_token = ids[first..end].iter().rposition(|id| tokenizer.is_end(*id));
        if let Some(last) = end_token {
            learned[first + last + 1..end].fill(false);
        }
        end = learned[..first].iter().rposition(|learned| *learned).map_or(0, |i| i + 1);
    }
}

fn common(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
