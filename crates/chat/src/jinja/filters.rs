//! Filters: `value | name(arguments)`.

use std::rc::Rc;

use super::arguments::Given;
use super::data::{self, Layout, sorting_price};
use super::machine::Machine;
use super::value::{List, Value};
use super::{checks, methods, operators};
use crate::{ChatError, python};

/// The value after the filter.
pub(super) fn apply<'t>(
    machine: &mut Machine<'t>,
    name: &str,
    value: Value,
    mut given: Given<'t>,
) -> Result<Value, ChatError> {
    let result = match name {
        "safe" => value,
        "string" => Value::Str(machine.text_of(&value)?),
        "default" | "d" => default(value, &mut given),
        "trim" | "upper" | "lower" | "capitalize" | "replace" => {
            return on_text(machine, name, &value, given);
        }
        "title" => {
            let text = machine.text_of(&value)?;
            machine.pay((text.len() as u64).saturating_mul(3))?;
            // Not the method of that name: here a word goes on behind an apostrophe.
            let ends = |c: char| python::is_space(c) || "-({[<".contains(c);
            Value::from(text.split_inclusive(ends).map(methods::capitalized).collect::<String>())
        }
        "indent" => indent(machine, &value, &mut given)?,
        "length" | "count" => length(machine, &value)?,
        "first" => machine.elements(&value)?.items.first().cloned().unwrap_or(Value::Undefined),
        "last" => machine.elements(&value)?.items.last().cloned().unwrap_or(Value::Undefined),
        "list" => Value::List(machine.elements(&value)?),
        "reverse" => {
            let items = machine.elements(&value)?;
            machine.pay_elements(items.items.len())?;
            Value::List(machine.list_of(items.items.iter().rev().cloned().collect())?)
        }
        "join" => join(machine, &value, &mut given)?,
        "map" => return map(machine, &value, given),
        "select" | "reject" | "selectattr" | "rejectattr" => {
            return select(machine, name, &value, given);
        }
        "sort" => sort(machine, &value, &mut given)?,
        "unique" => unique(machine, &value)?,
        "items" => methods::items(machine, &value)?,
        "dictsort" => dictsort(machine, &value)?,
        "int" => int(machine, &value)?,
        "float" => Value::Float(
            value.as_float().or_else(|| value.as_str()?.trim().parse().ok()).unwrap_or(0.0),
        ),
        "tojson" => to_json(machine, &value, &mut given)?,
        _ => return Err(machine.unsupported(format!("the filter `{name}`"))),
    };
    given.end(machine, name)?;
    Ok(result)
}

fn default(value: Value, given: &mut Given<'_>) -> Value {
    let other = given.take("default_value").unwrap_or_else(|| Value::from(""));
    let also_false = given.take("boolean").is_some_and(|flag| flag.is_true());
    if matches!(value, Value::Undefined) || (also_false && !value.is_true()) {
        other
    } else {
        value
    }
}

/// Filters that are the same as a string's method; other values are printed first.
fn on_text<'t>(
    machine: &mut Machine<'t>,
    name: &str,
    value: &Value,
    given: Given<'t>,
) -> Result<Value, ChatError> {
    let text = Value::Str(machine.text_of(value)?);
    methods::call(machine, &text, if name == "trim" { "strip" } else { name }, given)
}

fn indent(
    machine: &mut Machine<'_>,
    value: &Value,
    given: &mut Given<'_>,
) -> Result<Value, ChatError> {
    let text = machine.text_of(value)?;
    let blanks = match given.take("width") {
        None => Rc::from("    "),
        Some(Value::Str(blanks)) => blanks,
        Some(width) => {
            let width = width
                .as_int()
                .and_then(|n| usize::try_from(n).ok())
                .ok_or_else(|| machine.wrong("indent", &width))?;
            machine.pay(width as u64)?;
            Rc::from(" ".repeat(width))
        }
    };
    let first = given.take("first").is_some_and(|flag| flag.is_true());
    let empty = given.take("blank").is_some_and(|flag| flag.is_true());
    let mut out = String::new();
    for (i, line) in text.split('\n').enumerate() {
        let indented = if i == 0 { first } else { empty || !line.is_empty() };
        machine.pay(line.len() as u64 + 1 + if indented { blanks.len() as u64 } else { 0 })?;
        out.push_str(if i == 0 { "" } else { "\n" });
        out.push_str(if indented { &blanks } else { "" });
        out.push_str(line);
    }
    Ok(Value::from(out))
}

fn length(machine: &mut Machine<'_>, value: &Value) -> Result<Value, ChatError> {
    let length = match value {
        Value::Undefined => 0,
        Value::Str(text) => {
            machine.pay(text.len() as u64)?;
            text.chars().count()
        }
        Value::List(list) => list.items.len(),
        Value::Dict(dict) => dict.entries.len(),
        other => return Err(machine.wrong("length", other)),
    };
    Ok(Value::Int(length as i128))
}

fn join(
    machine: &mut Machine<'_>,
    value: &Value,
    given: &mut Given<'_>,
) -> Result<Value, ChatError> {
    let separator = given.take("d").unwrap_or_else(|| Value::from(""));
    let separator = machine.text_of(&separator)?;
    let attribute = given.take("attribute");
    let mut items = machine.elements(value)?;
    if let Some(attribute) = attribute {
        items = pluck(machine, &items, &attribute)?;
    }
    methods::join(machine, &separator, &items)
}

/// `map('filter', …)` or `map(attribute='name')`
fn map<'t>(
    machine: &mut Machine<'t>,
    value: &Value,
    mut given: Given<'t>,
) -> Result<Value, ChatError> {
    let items = machine.elements(value)?;
    if let Some(attribute) = given.take_named("attribute") {
        given.end(machine, "map")?;
        return pluck(machine, &items, &attribute).map(Value::List);
    }
    let filter = given.need_text(machine, "filter", "map")?;
    let mut mapped = Vec::new();
    for item in &items.items {
        let given = given.copy(machine)?;
        mapped.push(machine.nested(|machine| apply(machine, &filter, item.clone(), given))?);
    }
    machine.list_of(mapped).map(Value::List)
}

/// The elements that pass a test, or whose attribute does.
fn select<'t>(
    machine: &mut Machine<'t>,
    name: &str,
    value: &Value,
    mut given: Given<'t>,
) -> Result<Value, ChatError> {
    let keep = name.starts_with("select");
    let attribute =
        if name.ends_with("attr") { Some(given.need(machine, "attribute", name)?) } else { None };
    let test = match given.take("test") {
        None => None,
        Some(Value::Str(test)) => Some(test),
        Some(other) => return Err(machine.wrong(name, &other)),
    };
    let items = machine.elements(value)?;
    let mut kept = Vec::new();
    for item in &items.items {
        let subject = match &attribute {
            Some(attribute) => machine.item(item, attribute)?,
            None => item.clone(),
        };
        let passes = match &test {
            Some(test) => {
                let given = given.copy(machine)?;
                checks::test(machine, test, &subject, given)?
            }
            None => subject.is_true(),
        };
        if passes == keep {
            kept.push(item.clone());
        }
    }
    machine.list_of(kept).map(Value::List)
}

fn pluck(
    machine: &mut Machine<'_>,
    items: &List,
    attribute: &Value,
) -> Result<Rc<List>, ChatError> {
    let mut values = Vec::new();
    for item in &items.items {
        values.push(machine.item(item, attribute)?);
    }
    machine.list_of(values)
}

fn sort(
    machine: &mut Machine<'_>,
    value: &Value,
    given: &mut Given<'_>,
) -> Result<Value, ChatError> {
    let reverse = given.take("reverse").is_some_and(|flag| flag.is_true());
    let case_sensitive = given.take("case_sensitive").is_some_and(|flag| flag.is_true());
    let attribute = given.take("attribute");
    let items = machine.elements(value)?;
    machine.pay(sorting_price(value.weight(), items.items.len()).saturating_mul(4))?;
    let mut keyed = Vec::new();
    for item in &items.items {
        let key = match &attribute {
            Some(attribute) => machine.item(item, attribute)?,
            None => item.clone(),
        };
        let key = match key {
            Value::Str(text) if !case_sensitive => Value::from(text.to_lowercase()),
            key => key,
        };
        // Everything is compared with the first, so that the sort below cannot meet values without an order.
        let against =
            keyed.first().map_or_else(|| key.clone(), |(first, _): &(Value, Value)| first.clone());
        operators::order(machine, &key, &against)?;
        keyed.push((key, item.clone()));
    }
    keyed.sort_by(|(a, _), (b, _)| match (a, b) {
        (Value::Str(a), Value::Str(b)) => a.cmp(b),
        (a, b) => a.as_float().unwrap_or(0.0).total_cmp(&b.as_float().unwrap_or(0.0)),
    });
    if reverse {
        keyed.reverse();
    }
    machine.list_of(keyed.into_iter().map(|(_, item)| item).collect()).map(Value::List)
}

fn unique(machine: &mut Machine<'_>, value: &Value) -> Result<Value, ChatError> {
    let items = machine.elements(value)?;
    let mut kept: Vec<Value> = Vec::new();
    for item in &items.items {
        let seen = Value::List(machine.list_of(kept.clone())?);
        if !operators::contains(machine, &seen, item)? {
            kept.push(item.clone());
        }
    }
    machine.list_of(kept).map(Value::List)
}

fn dictsort(machine: &mut Machine<'_>, value: &Value) -> Result<Value, ChatError> {
    let Value::Dict(dict) = value else {
        return Err(machine.wrong("dictsort", value));
    };
    machine.pay(sorting_price(value.weight(), dict.entries.len()).saturating_mul(4))?;
    let mut entries: Vec<_> = dict.entries.iter().collect();
    entries.sort_by_cached_key(|(key, _)| key.to_lowercase());
    let mut pairs = Vec::new();
    for (key, item) in entries {
        pairs.push(Value::List(machine.list_of(vec![Value::Str(key.clone()), item.clone()])?));
    }
    machine.list_of(pairs).map(Value::List)
}

fn int(machine: &mut Machine<'_>, value: &Value) -> Result<Value, ChatError> {
    machine.pay(value.weight())?;
    let parsed = match value {
        Value::Str(text) => python::strip(text).parse().ok(),
        Value::Float(x) => Some(*x as i128),
        other => other.as_int(),
    };
    Ok(Value::Int(parsed.unwrap_or(0)))
}

fn to_json(
    machine: &mut Machine<'_>,
    value: &Value,
    given: &mut Given<'_>,
) -> Result<Value, ChatError> {
    let indent = match given.take("indent") {
        None | Some(Value::None) => None,
        Some(indent) => {
            let blanks = indent.as_int().and_then(|n| usize::try_from(n).ok());
            Some(blanks.ok_or_else(|| machine.wrong("tojson", &indent))?)
        }
    };
    given.take_named("ensure_ascii");
    let sort_keys = given.take_named("sort_keys").is_some_and(|flag| flag.is_true());
    let (mut item_separator, mut key_separator): (Rc<str>, Rc<str>) =
        (if indent.is_some() { "," } else { ", " }.into(), ": ".into());
    if let Some(separators) = given.take_named("separators").filter(Value::is_true) {
        match machine.elements(&separators)?.items.as_slice() {
            [Value::Str(item), Value::Str(key)] => {
                (item_separator, key_separator) = (item.clone(), key.clone())
            }
            _ => return Err(machine.wrong("tojson", &separators)),
        }
    }
    let layout = Layout { indent, sort_keys, item_separator, key_separator };
    let mut out = String::new();
    data::write_json(machine, &mut out, value, &layout, 0)?;
    Ok(Value::from(out))
}
