//! Methods of strings and mappings: `value.name(arguments)`.

use super::arguments::Given;
use super::machine::Machine;
use super::value::{List, Value};
use crate::{ChatError, python};

/// Calls a method.
pub(super) fn call<'t>(
    machine: &mut Machine<'t>,
    value: &Value,
    name: &str,
    mut given: Given<'t>,
) -> Result<Value, ChatError> {
    let result = match value {
        Value::Str(text) => of_text(machine, text, name, &mut given)?,
        Value::Dict(dict) => match name {
            "get" => {
                let key = given.need(machine, "key", name)?;
                let default = given.take("default").unwrap_or(Value::None);
                match machine.item(value, &key)? {
                    Value::Undefined => Some(default),
                    found => Some(found),
                }
            }
            "items" => Some(items(machine, value)?),
            "keys" => Some(Value::List(machine.elements(value)?)),
            "values" => {
                machine.pay_elements(dict.entries.len())?;
                Some(Value::List(
                    machine.list_of(dict.entries.iter().map(|(_, item)| item.clone()).collect())?,
                ))
            }
            _ => None,
        },
        Value::Undefined => return Err(machine.wrong(&format!("the method `{name}`"), value)),
        _ => None,
    };
    let result = result
        .ok_or_else(|| machine.unsupported(format!("the method `{name}` of {}", value.kind())))?;
    given.end(machine, name)?;
    Ok(result)
}

/// The pairs of a mapping.
pub(super) fn items(machine: &mut Machine<'_>, value: &Value) -> Result<Value, ChatError> {
    let Value::Dict(dict) = value else {
        return Err(machine.wrong("items", value));
    };
    let mut pairs = Vec::new();
    for (key, item) in &dict.entries {
        pairs.push(Value::List(machine.list_of(vec![Value::Str(key.clone()), item.clone()])?));
    }
    machine.list_of(pairs).map(Value::List)
}

/// The printed elements with a separator between them.
pub(super) fn join(
    machine: &mut Machine<'_>,
    separator: &str,
    items: &List,
) -> Result<Value, ChatError> {
    let mut out = String::new();
    for (i, item) in items.items.iter().enumerate() {
        let text = machine.text_of(item)?;
        machine.pay(text.len() as u64 + separator.len() as u64 + 1)?;
        out.push_str(if i == 0 { "" } else { separator });
        out.push_str(&text);
    }
    Ok(Value::from(out))
}

fn of_text(
    machine: &mut Machine<'_>,
    text: &str,
    name: &str,
    given: &mut Given<'_>,
) -> Result<Option<Value>, ChatError> {
    // Changing case may triple a text.
    machine.pay((text.len() as u64).saturating_mul(3) + 1)?;
    Ok(Some(match name {
        "strip" | "lstrip" | "rstrip" => strip(machine, text, name, given)?,
        "upper" => Value::from(text.to_uppercase()),
        "lower" => Value::from(text.to_lowercase()),
        "capitalize" => Value::from(capitalized(text)),
        "title" => Value::from(
            text.split_inclusive(|c: char| !c.is_alphabetic()).map(capitalized).collect::<String>(),
        ),
        "split" | "rsplit" => split(machine, text, name, given)?,
        "splitlines" => {
            machine.pay_elements(text.matches('\n').count())?;
            Value::List(machine.list_of(text.lines().map(Value::from).collect())?)
        }
        "startswith" => Value::Bool(text.starts_with(&*given.need_text(machine, "prefix", name)?)),
        "endswith" => Value::Bool(text.ends_with(&*given.need_text(machine, "suffix", name)?)),
        "removeprefix" => {
            let prefix = given.need_text(machine, "prefix", name)?;
            Value::from(text.strip_prefix(&*prefix).unwrap_or(text))
        }
        "removesuffix" => {
            let suffix = given.need_text(machine, "suffix", name)?;
            Value::from(text.strip_suffix(&*suffix).unwrap_or(text))
        }
        "replace" => replace(machine, text, given)?,
        "find" => {
            let part = given.need_text(machine, "part", name)?;
            Value::Int(text.find(&*part).map_or(-1, |at| text[..at].chars().count() as i128))
        }
        "count" => {
            let part = given.need_text(machine, "part", name)?;
            Value::Int(text.matches(&*part).count() as i128)
        }
        "join" => {
            let list = given.need(machine, "list", name)?;
            let items = machine.elements(&list)?;
            join(machine, text, &items)?
        }
        "isdigit" => Value::Bool(!text.is_empty() && text.chars().all(|c| c.is_ascii_digit())),
        _ => return Ok(None),
    }))
}

fn strip(
    machine: &mut Machine<'_>,
    text: &str,
    name: &str,
    given: &mut Given<'_>,
) -> Result<Value, ChatError> {
    let characters = match given.take("chars") {
        None | Some(Value::None) => None,
        Some(Value::Str(characters)) => Some(characters),
        Some(other) => return Err(machine.wrong(name, &other)),
    };
    if let Some(characters) = &characters {
        machine.pay((text.len() as u64 + 1).saturating_mul(characters.len() as u64))?;
    }
    let dropped =
        |c: char| characters.as_ref().map_or_else(|| python::is_space(c), |set| set.contains(c));
    Ok(Value::from(match name {
        "lstrip" => text.trim_start_matches(dropped),
        "rstrip" => text.trim_end_matches(dropped),
        _ => text.trim_matches(dropped),
    }))
}

fn split(
    machine: &mut Machine<'_>,
    text: &str,
    name: &str,
    given: &mut Given<'_>,
) -> Result<Value, ChatError> {
    let separator = match given.take("sep") {
        None | Some(Value::None) => None,
        Some(Value::Str(separator)) if !separator.is_empty() => Some(separator),
        Some(other) => return Err(machine.wrong(name, &other)),
    };
    let most = match given.take("maxsplit") {
        None => usize::MAX,
        Some(most) => {
            let most = most.as_int().ok_or_else(|| machine.wrong(name, &most))?;
            usize::try_from(most).map_or(usize::MAX, |most| most.saturating_add(1))
        }
    };
    let parts: Vec<&str> = match (&separator, name) {
        (Some(separator), "split") => text.splitn(most, &**separator).collect(),
        (Some(separator), _) => {
            let mut parts: Vec<&str> = text.rsplitn(most, &**separator).collect();
            parts.reverse();
            parts
        }
        (None, _) if most == usize::MAX => {
            text.split(python::is_space).filter(|part| !part.is_empty()).collect()
        }
        (None, _) => {
            return Err(machine.unsupported(format!("`{name}` at white space with a limit")));
        }
    };
    machine.pay_elements(parts.len())?;
    machine.list_of(parts.into_iter().map(Value::from).collect()).map(Value::List)
}

fn replace(
    machine: &mut Machine<'_>,
    text: &str,
    given: &mut Given<'_>,
) -> Result<Value, ChatError> {
    let old = given.need_text(machine, "old", "replace")?;
    let new = given.need_text(machine, "new", "replace")?;
    let most = match given.take("count") {
        None | Some(Value::None) => usize::MAX,
        Some(count) => {
            let count = count.as_int().ok_or_else(|| machine.wrong("replace", &count))?;
            usize::try_from(count).unwrap_or(usize::MAX)
        }
    };
    let matches = text.matches(&*old).count().min(most);
    machine.pay((matches as u64).saturating_mul(new.len() as u64))?;
    Ok(Value::from(text.replacen(&*old, &new, matches)))
}

/// The first character in upper case, the others in lower case.
pub(super) fn capitalized(word: &str) -> String {
    let mut characters = word.chars();
    let first: String = characters.next().into_iter().flat_map(char::to_uppercase).collect();
    first + &characters.as_str().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::capitalized;

    #[test]
    fn capitals() {
        assert_eq!(capitalized("éCOLE d'É"), "École d'é");
        assert_eq!(capitalized(""), "");
    }
}
