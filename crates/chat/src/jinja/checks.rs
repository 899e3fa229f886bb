//! Tests: `value is name`.

use super::arguments::Given;
use super::ast::Comparison;
use super::machine::Machine;
use super::operators::compare;
use super::value::Value;
use crate::ChatError;

/// Whether the value passes the test.
pub(super) fn test(
    machine: &mut Machine<'_>,
    name: &str,
    value: &Value,
    mut given: Given<'_>,
) -> Result<bool, ChatError> {
    let comparison = match name {
        "eq" | "equalto" | "sameas" => Some(Comparison::Equal),
        "ne" => Some(Comparison::NotEqual),
        "lt" | "lessthan" => Some(Comparison::Less),
        "le" => Some(Comparison::LessOrEqual),
        "gt" | "greaterthan" => Some(Comparison::Greater),
        "ge" => Some(Comparison::GreaterOrEqual),
        "in" => Some(Comparison::In),
        _ => None,
    };
    if let Some(comparison) = comparison {
        let other = given.need(machine, "other", name)?;
        given.end(machine, name)?;
        return compare(machine, comparison, value, &other);
    }
    let whole = |value: &Value| value.as_int().ok_or_else(|| machine.wrong(name, value));
    let result = match name {
        "defined" => !matches!(value, Value::Undefined),
        "undefined" => matches!(value, Value::Undefined),
        "none" => matches!(value, Value::None),
        "true" => matches!(value, Value::Bool(true)),
        "false" => matches!(value, Value::Bool(false)),
        "boolean" => matches!(value, Value::Bool(_)),
        "string" => matches!(value, Value::Str(_)),
        "number" => value.as_float().is_some(),
        "integer" => matches!(value, Value::Int(_)),
        "float" => matches!(value, Value::Float(_)),
        "mapping" => matches!(value, Value::Dict(_)),
        // To Python, an undefined value is an empty sequence too.
        "sequence" | "iterable" => {
            matches!(value, Value::List(_) | Value::Str(_) | Value::Dict(_) | Value::Undefined)
        }
        "callable" => matches!(value, Value::Macro(_)),
        "odd" => whole(value)? & 1 == 1,
        "even" => whole(value)? & 1 == 0,
        "divisibleby" => {
            let divisor = given.need(machine, "num", name)?;
            let divisor = divisor
                .as_int()
                .filter(|n| *n != 0)
                .ok_or_else(|| machine.wrong(name, &divisor))?;
            whole(value)?.checked_rem(divisor) == Some(0)
        }
        _ => return Err(machine.unsupported(format!("the test `{name}`"))),
    };
    given.end(machine, name)?;
    Ok(result)
}
