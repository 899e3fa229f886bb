//! Arithmetic and comparison.

use std::cmp::Ordering;

use super::ast::{Arithmetic, Comparison};
use super::machine::Machine;
use super::value::Value;
use crate::ChatError;

/// `left operator right`
pub(super) fn arithmetic(
    machine: &mut Machine<'_>,
    operator: Arithmetic,
    left: &Value,
    right: &Value,
) -> Result<Value, ChatError> {
    match (operator, left, right) {
        (Arithmetic::Concatenate, left, right) => {
            let (left, right) = (machine.text_of(left)?, machine.text_of(right)?);
            concatenate(machine, &left, &right)
        }
        (Arithmetic::Add, Value::Str(left), Value::Str(right)) => concatenate(machine, left, right),
        (Arithmetic::Add, Value::List(left), Value::List(right)) => {
            machine.pay_elements(left.items.len() + right.items.len())?;
            let items = left.items.iter().chain(&right.items).cloned().collect();
            machine.list_of(items).map(Value::List)
        }
        (Arithmetic::Multiply, Value::Str(text), count)
        | (Arithmetic::Multiply, count, Value::Str(text)) => {
            let count = repetitions(machine, count)?;
            machine.pay((text.len() as u64).saturating_mul(count as u64))?;
            Ok(Value::from(text.repeat(count)))
        }
        (Arithmetic::Multiply, Value::List(list), count)
        | (Arithmetic::Multiply, count, Value::List(list)) => {
            let count = repetitions(machine, count)?;
            let length = list.items.len().saturating_mul(count);
            machine.pay_elements(length)?;
            machine
                .list_of(list.items.iter().cycle().take(length).cloned().collect())
                .map(Value::List)
        }
        _ => numbers(operator, left, right).ok_or_else(|| {
            let odd = if left.as_float().is_some() { right } else { left };
            machine.wrong(&format!("{operator:?}").to_lowercase(), odd)
        }),
    }
}

/// `-value`
pub(super) fn negate(machine: &Machine<'_>, value: &Value) -> Result<Value, ChatError> {
    numbers(Arithmetic::Subtract, &Value::Int(0), value)
        .ok_or_else(|| machine.wrong("negation", value))
}

/// `left operator right`, as a truth value.
pub(super) fn compare(
    machine: &mut Machine<'_>,
    operator: Comparison,
    left: &Value,
    right: &Value,
) -> Result<bool, ChatError> {
    match operator {
        Comparison::Equal => equal(machine, left, right),
        Comparison::NotEqual => Ok(!equal(machine, left, right)?),
        Comparison::In => contains(machine, right, left),
        Comparison::NotIn => Ok(!contains(machine, right, left)?),
        Comparison::Less => Ok(order(machine, left, right)?.is_some_and(Ordering::is_lt)),
        Comparison::LessOrEqual => Ok(order(machine, left, right)?.is_some_and(Ordering::is_le)),
        Comparison::Greater => Ok(order(machine, left, right)?.is_some_and(Ordering::is_gt)),
        Comparison::GreaterOrEqual => Ok(order(machine, left, right)?.is_some_and(Ordering::is_ge)),
    }
}

pub(super) fn equal(
    machine: &mut Machine<'_>,
    left: &Value,
    right: &Value,
) -> Result<bool, ChatError> {
    machine.pay(left.weight().min(right.weight()))?;
    Ok(left.equals(right))
}

/// How two numbers or two strings compare; nothing for numbers that do not.
pub(super) fn order(
    machine: &mut Machine<'_>,
    left: &Value,
    right: &Value,
) -> Result<Option<Ordering>, ChatError> {
    machine.pay(left.weight().min(right.weight()))?;
    match (left, right) {
        (Value::Str(left), Value::Str(right)) => Ok(Some(left.cmp(right))),
        (left, right) => match (left.as_int(), right.as_int(), left.as_float(), right.as_float()) {
            (Some(left), Some(right), ..) => Ok(Some(left.cmp(&right))),
            (_, _, Some(left), Some(right)) => Ok(left.partial_cmp(&right)),
            (_, _, Some(_), None) => Err(machine.wrong("ordering", right)),
            _ => Err(machine.wrong("ordering", left)),
        },
    }
}

/// `item in container`
pub(super) fn contains(
    machine: &mut Machine<'_>,
    container: &Value,
    item: &Value,
) -> Result<bool, ChatError> {
    match (container, item) {
        (Value::Str(text), Value::Str(part)) => {
            machine.pay(text.len() as u64 + part.len() as u64)?;
            Ok(text.contains(&**part))
        }
        (Value::List(list), item) => {
            for element in &list.items {
                if equal(machine, element, item)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        (Value::Dict(dict), Value::Str(key)) => {
            machine.pay(key.len() as u64)?;
            Ok(dict.get(key).is_some())
        }
        (Value::Dict(_) | Value::Undefined, _) => Ok(false),
        (Value::Str(_), item) => Err(machine.wrong("looking for it in a string", item)),
        (other, _) => Err(machine.wrong("looking into", other)),
    }
}

fn concatenate(machine: &mut Machine<'_>, left: &str, right: &str) -> Result<Value, ChatError> {
    machine.pay(left.len() as u64 + right.len() as u64)?;
    Ok(Value::from([left, right].concat()))
}

fn repetitions(machine: &Machine<'_>, count: &Value) -> Result<usize, ChatError> {
    let count = count.as_int().ok_or_else(|| machine.wrong("repetition", count))?;
    // More than fits is more than any budget, and a negative count is none.
    Ok(usize::try_from(count.max(0)).unwrap_or(usize::MAX))
}

/// Arithmetic of numbers; nothing where it is not defined or overflows.
fn numbers(operator: Arithmetic, left: &Value, right: &Value) -> Option<Value> {
    if let (Some(a), Some(b)) = (left.as_int(), right.as_int()) {
        let whole = match operator {
            Arithmetic::Add => a.checked_add(b),
            Arithmetic::Subtract => a.checked_sub(b),
            Arithmetic::Multiply => a.checked_mul(b),
            Arithmetic::FloorDivide => floor_divide(a, b),
            Arithmetic::Remainder => {
                floor_divide(a, b).and_then(|q| a.checked_sub(q.checked_mul(b)?))
            }
            Arithmetic::Power if b >= 0 => a.checked_pow(u32::try_from(b).ok()?),
            Arithmetic::Divide | Arithmetic::Power => {
                return fractions(operator, a as f64, b as f64);
            }
            Arithmetic::Concatenate => None,
        };
        return whole.map(Value::Int);
    }
    fractions(operator, left.as_float()?, right.as_float()?)
}

fn floor_divide(a: i128, b: i128) -> Option<i128> {
    let quotient = a.checked_div(b)?;
    let inexact = a.checked_rem(b)? != 0;
    Some(if inexact && ((a < 0) != (b < 0)) { quotient - 1 } else { quotient })
}

fn fractions(operator: Arithmetic, a: f64, b: f64) -> Option<Value> {
    let divides =
        matches!(operator, Arithmetic::Divide | Arithmetic::FloorDivide | Arithmetic::Remainder);
    if divides && b == 0.0 {
        return None;
    }
    Some(Value::Float(match operator {
        Arithmetic::Add => a + b,
        Arithmetic::Subtract => a - b,
        Arithmetic::Multiply => a * b,
        Arithmetic::Divide => a / b,
        Arithmetic::FloorDivide => (a / b).floor(),
        Arithmetic::Remainder => a - b * (a / b).floor(),
        Arithmetic::Power => a.powf(b),
        Arithmetic::Concatenate => return None,
    }))
}
