//! Data in and out: JSON to values, and values to JSON text as Python's `json.dumps` writes it.

use std::rc::Rc;

use super::machine::{DATA_DEPTH, Machine};
use super::value::Value;
use crate::{ChatError, python};

/// A value from JSON, paid for.
pub(super) fn from_json(
    machine: &mut Machine<'_>,
    json: &serde_json::Value,
    depth: u32,
) -> Result<Value, ChatError> {
    use serde_json::Value as Json;
    if depth > DATA_DEPTH {
        return Err(ChatError::TemplateLimit { line: 1, limit: "the nesting of data" });
    }
    match json {
        Json::Null => Ok(Value::None),
        Json::Bool(b) => Ok(Value::Bool(*b)),
        Json::Number(n) => {
            Ok(n.as_i128().map_or_else(|| Value::Float(n.as_f64().unwrap_or(f64::NAN)), Value::Int))
        }
        Json::String(text) => {
            machine.pay(text.len() as u64)?;
            Ok(Value::from(text.as_str()))
        }
        Json::Array(items) => {
            let items = items
                .iter()
                .map(|item| from_json(machine, item, depth + 1))
                .collect::<Result<_, _>>()?;
            machine.list_of(items).map(Value::List)
        }
        Json::Object(map) => {
            let pairs = map.iter().map(|(key, item)| {
                Ok((Rc::from(key.as_str()), from_json(machine, item, depth + 1)?))
            });
            let pairs = pairs.collect::<Result<_, ChatError>>()?;
            machine.dict_of(pairs)
        }
    }
}

/// Layout of JSON text.
pub(super) struct Layout {
    /// Blanks per level; none for a single line.
    pub(super) indent: Option<usize>,
    pub(super) sort_keys: bool,
    pub(super) item_separator: Rc<str>,
    pub(super) key_separator: Rc<str>,
}

/// Writes JSON, paying on the way.
pub(super) fn write_json(
    machine: &mut Machine<'_>,
    out: &mut String,
    value: &Value,
    layout: &Layout,
    level: usize,
) -> Result<(), ChatError> {
    machine.pay(1)?;
    match value {
        Value::None => out.push_str("null"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Int(n) => out.push_str(&n.to_string()),
        Value::Float(x) => out.push_str(&python::float(*x)),
        Value::Str(text) => write_text(machine, out, text)?,
        Value::List(list) => {
            out.push('[');
            for (i, item) in list.items.iter().enumerate() {
                separate(machine, out, layout, i, level + 1)?;
                write_json(machine, out, item, layout, level + 1)?;
            }
            close(machine, out, layout, list.items.is_empty(), level)?;
            out.push(']');
        }
        Value::Dict(dict) => {
            out.push('{');
            let mut entries: Vec<_> = dict.entries.iter().collect();
            if layout.sort_keys {
                machine.pay(sorting_price(value.weight(), entries.len()))?;
                entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            }
            for (i, (key, item)) in entries.into_iter().enumerate() {
                separate(machine, out, layout, i, level + 1)?;
                write_text(machine, out, key)?;
                machine.pay(layout.key_separator.len() as u64)?;
                out.push_str(&layout.key_separator);
                write_json(machine, out, item, layout, level + 1)?;
            }
            close(machine, out, layout, dict.entries.is_empty(), level)?;
            out.push('}');
        }
        other => return Err(machine.wrong("tojson", other)),
    }
    Ok(())
}

/// What it costs to sort that many elements of that weight together.
pub(super) fn sorting_price(weight: u64, count: usize) -> u64 {
    weight.saturating_mul(u64::from(count.max(1).ilog2()) + 1)
}

fn write_text(machine: &mut Machine<'_>, out: &mut String, text: &str) -> Result<(), ChatError> {
    // An escape takes six characters at most.
    machine.pay((text.len() as u64).saturating_mul(6))?;
    out.push_str(&serde_json::Value::from(text).to_string());
    Ok(())
}

fn separate(
    machine: &mut Machine<'_>,
    out: &mut String,
    layout: &Layout,
    index: usize,
    level: usize,
) -> Result<(), ChatError> {
    if index > 0 {
        machine.pay(layout.item_separator.len() as u64)?;
        out.push_str(&layout.item_separator);
    }
    new_line(machine, out, layout, level)
}

fn close(
    machine: &mut Machine<'_>,
    out: &mut String,
    layout: &Layout,
    empty: bool,
    level: usize,
) -> Result<(), ChatError> {
    if empty { Ok(()) } else { new_line(machine, out, layout, level) }
}

fn new_line(
    machine: &mut Machine<'_>,
    out: &mut String,
    layout: &Layout,
    level: usize,
) -> Result<(), ChatError> {
    if let Some(indent) = layout.indent {
        let blanks = indent.saturating_mul(level);
        machine.pay(blanks as u64 + 1)?;
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', blanks));
    }
    Ok(())
}
