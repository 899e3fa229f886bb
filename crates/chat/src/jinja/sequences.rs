//! Indices, slices and ranges.

use super::arguments::Given;
use super::machine::Machine;
use super::value::Value;
use crate::ChatError;

/// The place an index means: negative ones count from the end.
pub(super) fn place(index: i128, length: usize) -> Option<usize> {
    let place = if index < 0 { index.checked_add(length as i128)? } else { index };
    usize::try_from(place).ok().filter(|place| *place < length)
}

/// `value[start:stop:step]`
pub(super) fn slice(
    machine: &mut Machine<'_>,
    value: &Value,
    bounds: [Option<i128>; 3],
) -> Result<Value, ChatError> {
    match value {
        Value::List(list) => {
            let places = places(machine, list.items.len(), bounds)?;
            machine
                .list_of(places.into_iter().map(|place| list.items[place].clone()).collect())
                .map(Value::List)
        }
        Value::Str(text) => {
            machine.pay_elements(text.len())?;
            let characters: Vec<char> = text.chars().collect();
            let places = places(machine, characters.len(), bounds)?;
            Ok(Value::from(places.into_iter().map(|place| characters[place]).collect::<String>()))
        }
        other => Err(machine.wrong("slicing", other)),
    }
}

/// The places a slice picks, in its order.
fn places(
    machine: &mut Machine<'_>,
    length: usize,
    bounds: [Option<i128>; 3],
) -> Result<Vec<usize>, ChatError> {
    let [start, stop, step] = bounds;
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(machine.unsupported("a slice with step 0".into()));
    }
    let length = length as i128;
    let (lowest, highest) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let bound = |bound: Option<i128>, default: i128| match bound {
        None => default,
        Some(b) if b < 0 => b.saturating_add(length).max(lowest),
        Some(b) => b.min(highest),
    };
    let (start, stop) = if step > 0 {
        (bound(start, lowest), bound(stop, highest))
    } else {
        (bound(start, highest), bound(stop, lowest))
    };
    progression(machine, start, stop, step)
        .map(|numbers| numbers.into_iter().map(|n| n as usize).collect())
}

/// `range(stop)`, `range(start, stop)`, `range(start, stop, step)`
pub(super) fn range(machine: &mut Machine<'_>, mut given: Given<'_>) -> Result<Value, ChatError> {
    let mut numbers = Vec::new();
    while let Some(value) = given.take("") {
        numbers.push(value.as_int().ok_or_else(|| machine.wrong("range", &value))?);
    }
    given.end(machine, "range")?;
    let (start, stop, step) = match numbers[..] {
        [stop] => (0, stop, 1),
        [start, stop] => (start, stop, 1),
        [start, stop, step] if step != 0 => (start, stop, step),
        _ => return Err(machine.unsupported("`range` with these arguments".into())),
    };
    let numbers = progression(machine, start, stop, step)?;
    machine.list_of(numbers.into_iter().map(Value::Int).collect()).map(Value::List)
}

/// The numbers from start to before stop, paid for before they are made.
fn progression(
    machine: &mut Machine<'_>,
    start: i128,
    stop: i128,
    step: i128,
) -> Result<Vec<i128>, ChatError> {
    let distance = if step > 0 { stop.saturating_sub(start) } else { start.saturating_sub(stop) };
    let stride = step.saturating_abs();
    let count = (distance.max(0) - 1).div_euclid(stride) + 1;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    machine.pay_elements(count)?;
    // Each number lies between the two given ones, so that nothing overflows.
    Ok((0..count as i128).map(|i| start + i * step).collect())
}
