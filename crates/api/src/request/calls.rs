//! Tool calls of earlier turns, and the matching of results to calls.

use rullama_chat::{Message, ToolCall};
use serde_json::Value;

use crate::ApiError;
use crate::fields::Field;

/// Arguments as the JSON text of an object (OpenAI), or the object itself.
pub(super) fn arguments(field: Option<Field>) -> Result<Value, ApiError> {
    let Some(Field { value, path }) = field else { return Ok(Value::Object(Default::default())) };
    let wrong = || ApiError::field(path.clone(), "a JSON object");
    match value {
        Value::Object(_) => Ok(value),
        Value::String(text) if text.trim().is_empty() => Ok(Value::Object(Default::default())),
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(object @ Value::Object(_)) => Ok(object),
            _ => Err(wrong()),
        },
        _ => Err(wrong()),
    }
}

/// More than any model emits; lists are searched linearly.
const MAX_CALLS: usize = 1024;

/// A call without a result yet.
struct Pending {
    /// The id that the client sent.
    id: Option<String>,
    /// The id made unique.
    unique_id: Option<String>,
    name: String,
    has_result: bool,
}

/// Gives every result the id and the name of its call: matched by id, by name, then by order. Some clients replay calls
/// without ids.
pub(super) fn match_results(messages: &mut [Message]) -> Result<(), ApiError> {
    let mut pending: Vec<Pending> = Vec::new();
    for (index, message) in messages.iter_mut().enumerate() {
        if message.role != "tool" {
            if message.tool_calls.len() > MAX_CALLS {
                return Err(ApiError::field("tool_calls", "a list of at most 1024 calls"));
            }
            let ids: Vec<_> = message.tool_calls.iter().map(|call| call.id.clone()).collect();
            make_ids_unique(&mut message.tool_calls);
            let calls = ids.into_iter().zip(&message.tool_calls);
            pending = calls
                .map(|(id, call)| Pending {
                    id,
                    unique_id: call.id.clone(),
                    name: call.name.clone(),
                    has_result: false,
                })
                .collect();
            continue;
        }
        let call = call_of(&mut pending, message).ok_or(ApiError::ResultWithoutCall { index })?;
        call.has_result = true;
        message.name = Some(call.name.clone());
        message.tool_call_id = call.unique_id.clone();
    }
    Ok(())
}

/// The call that a result belongs to.
fn call_of<'a>(pending: &'a mut [Pending], result: &Message) -> Option<&'a mut Pending> {
    let open = |is: &dyn Fn(&Pending) -> bool| {
        pending.iter().position(|call| !call.has_result && is(call))
    };
    let found = open(&|call| call.id.is_some() && call.id == result.tool_call_id)
        .or_else(|| open(&|call| result.name.as_deref() == Some(&call.name)))
        .or_else(|| open(&|_| true))?;
    pending.get_mut(found)
}

/// Makes ids unique: the template finds a result's call by id alone.
fn make_ids_unique(calls: &mut [ToolCall]) {
    for i in 0..calls.len() {
        let taken = |id: &Option<String>, calls: &[ToolCall]| {
            calls.iter().enumerate().any(|(j, call)| j != i && call.id == *id)
        };
        if calls[i].id.is_some() && !taken(&calls[i].id, &calls[..i]) {
            continue;
        }
        let mut number = i;
        while {
            calls[i].id = Some(format!("call_{number}"));
            taken(&calls[i].id, calls)
        } {
            number += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: Option<&str>, name: &str) -> ToolCall {
        ToolCall { id: id.map(str::to_owned), name: name.to_owned(), arguments: Value::Null }
    }

    fn result(id: Option<&str>, name: Option<&str>) -> Message {
        let mut message = Message::new("tool", "r");
        message.tool_call_id = id.map(str::to_owned);
        message.name = name.map(str::to_owned);
        message
    }

    /// The names of the calls that results are matched to.
    fn matched(calls: Vec<ToolCall>, results: Vec<Message>) -> Vec<(String, String)> {
        let mut messages = vec![Message { tool_calls: calls, ..Message::new("assistant", "") }];
        messages.extend(results);
        match_results(&mut messages).expect("every result has a call");
        let calls = messages[0].tool_calls.clone();
        let of = |result: &Message| {
            let call = calls.iter().find(|call| call.id == result.tool_call_id);
            (call.expect("an id of a call").name.clone(), result.name.clone().expect("named"))
        };
        messages[1..].iter().map(of).collect()
    }

    #[test]
    fn by_id_then_name_then_order() {
        let both = |name: &str| (name.to_owned(), name.to_owned());
        let calls = || vec![call(Some("1"), "f"), call(Some("2"), "g"), call(None, "h")];
        let results = vec![result(Some("2"), None), result(None, Some("h")), result(None, None)];
        assert_eq!(matched(calls(), results), [both("g"), both("h"), both("f")]);
        let results = vec![result(None, None), result(None, None), result(Some("?"), None)];
        assert_eq!(matched(calls(), results), [both("f"), both("g"), both("h")]);
    }

    #[test]
    fn equal_ids_are_told_apart() {
        let calls = vec![call(Some("1"), "f"), call(Some("1"), "g"), call(Some("call_1"), "h")];
        let results = vec![result(Some("1"), None), result(Some("1"), None)];
        let both = |name: &str| (name.to_owned(), name.to_owned());
        assert_eq!(matched(calls, results), [both("f"), both("g")]);
    }

    #[test]
    fn results_without_calls_are_refused() {
        let mut messages = vec![Message::new("user", "hi"), result(None, None)];
        assert_eq!(match_results(&mut messages), Err(ApiError::ResultWithoutCall { index: 1 }));
        let mut messages = vec![
            Message { tool_calls: vec![call(None, "f")], ..Message::new("assistant", "") },
            result(None, None),
            result(None, None),
        ];
        assert_eq!(match_results(&mut messages), Err(ApiError::ResultWithoutCall { index: 2 }));
    }
}
