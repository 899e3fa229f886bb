//! The engine's filters and Python's methods, with bounds on what they make and read.

use minijinja::value::ValueKind;
use minijinja::{Error, State, Value, filters};
use minijinja_contrib::pycompat::unknown_method_callback;

use super::budget::{Budget, ELEMENT, length, size};

/// The engine's filters that templates may use.
pub(super) fn builtin() -> Vec<(&'static str, Value)> {
    vec![
        ("safe", Value::from_function(filters::safe)),
        ("escape", Value::from_function(filters::escape)),
        ("e", Value::from_function(filters::escape)),
        ("title", Value::from_function(filters::title)),
        ("capitalize", Value::from_function(filters::capitalize)),
        ("replace", Value::from_function(filters::replace)),
        ("length", Value::from_function(filters::length)),
        ("count", Value::from_function(filters::length)),
        ("items", Value::from_function(filters::items)),
        ("reverse", Value::from_function(filters::reverse)),
        ("join", Value::from_function(filters::join)),
        ("split", Value::from_function(filters::split)),
        ("lines", Value::from_function(filters::lines)),
        ("default", Value::from_function(filters::default)),
        ("d", Value::from_function(filters::default)),
        ("round", Value::from_function(filters::round)),
        ("abs", Value::from_function(filters::abs)),
        ("int", Value::from_function(filters::int)),
        ("float", Value::from_function(filters::float)),
        ("attr", Value::from_function(filters::attr)),
        ("first", Value::from_function(filters::first)),
        ("last", Value::from_function(filters::last)),
        ("min", Value::from_function(filters::min)),
        ("max", Value::from_function(filters::max)),
        ("sort", Value::from_function(filters::sort)),
        ("list", Value::from_function(filters::list)),
        ("bool", Value::from_function(filters::bool)),
        ("batch", Value::from_function(filters::batch)),
        ("slice", Value::from_function(filters::slice)),
        ("sum", Value::from_function(filters::sum)),
        ("indent", Value::from_function(filters::indent)),
        ("select", Value::from_function(filters::select)),
        ("reject", Value::from_function(filters::reject)),
        ("selectattr", Value::from_function(filters::selectattr)),
        ("rejectattr", Value::from_function(filters::rejectattr)),
        ("map", Value::from_function(filters::map)),
        ("groupby", Value::from_function(filters::groupby)),
        ("unique", Value::from_function(filters::unique)),
        ("format", Value::from_function(filters::format)),
    ]
}

/// Calls a filter, or a method whose receiver is the first argument, within the budget.
pub(super) fn guarded(
    budget: &Budget,
    name: &str,
    args: &[Value],
    call: impl FnOnce() -> Result<Value, Error>,
) -> Result<Value, Error> {
    budget.read(work(name, args))?;
    if let Some(bytes) = growth(name, args) {
        budget.fits(bytes)?;
    }
    let value = call()?;
    // These return what is there already.
    if matches!(name, "default" | "d" | "attr" | "first" | "last" | "get")
        && value.as_str().is_some()
    {
        return Ok(value);
    }
    budget.adopt(value)
}

/// A method of Python on a value.
pub(super) fn method(
    budget: &Budget,
    state: &State<'_, '_>,
    value: &Value,
    name: &str,
    args: &[Value],
) -> Result<Value, Error> {
    let mut all = vec![value.clone()];
    all.extend_from_slice(args);
    match (name, value.as_str(), args) {
        // The library's loop would not end.
        ("count", Some(text), [what]) if what.as_str() == Some("") => {
            budget.read(text.len())?;
            return Ok(Value::from(text.chars().count() + 1));
        }
        // The separator is the receiver.
        ("join", Some(_), [_]) => all.swap(0, 1),
        _ => {}
    }
    guarded(budget, name, &all, || unknown_method_callback(state, value, name, args))
}

/// The bytes that a filter or method reads.
fn work(name: &str, args: &[Value]) -> usize {
    let Some((first, rest)) = args.split_first() else { return 0 };
    let others = rest.iter().map(|value| size(value).0).fold(0, usize::saturating_add);
    let whole = size(first).0.saturating_add(others);
    let elements = length(first);
    match name {
        "default" | "d" | "attr" | "get" => 0,
        "length" | "count" | "first" | "last" => first.as_str().map_or(0, str::len),
        "items" | "list" | "reverse" | "batch" | "slice" | "groupby" | "keys" | "values" => {
            elements.saturating_mul(ELEMENT)
        }
        // Each element may be compared with the arguments.
        "map" | "select" | "reject" | "selectattr" | "rejectattr" => {
            elements.saturating_mul(others.saturating_add(ELEMENT))
        }
        // Sums of lists and texts are copied for each element.
        "sum" => elements.saturating_mul(whole),
        _ => whole,
    }
}

/// An upper bound of the result of a filter or method that can make much of little.
fn growth(name: &str, args: &[Value]) -> Option<usize> {
    let first = args.first()?;
    let text = first.as_str();
    let count_of = |what: &str| match text {
        Some(text) if what.is_empty() => text.len() + 1,
        Some(text) => text.matches(what).count(),
        None => size(first).0,
    };
    let argument = |at: usize| args.get(at).and_then(|value| value.as_str());
    // A character of a text in a list is printed as four at most.
    let printed = |at: usize| {
        let value = args.get(at)?;
        Some(value.as_str().map_or_else(|| size(value).0.saturating_mul(4), str::len))
    };
    let whole = size(first).0;
    let (count, each) = match name {
        "replace" => (count_of(argument(1).unwrap_or("")), printed(2).unwrap_or(0)),
        "indent" => (count_of("\n") + 1, largest_number(args)),
        "join" => (length(first), printed(1).unwrap_or(0)),
        "format" => {
            let digits = text.unwrap_or_default().split(|c: char| !c.is_ascii_digit());
            let digits = digits.filter(|digits| !digits.is_empty());
            let width = digits.map(|digits| digits.parse().unwrap_or(usize::MAX)).max();
            let longest = args.iter().skip(1).map(|value| size(value).0).max().unwrap_or(0);
            let each = longest.saturating_add(width.unwrap_or(0).max(largest_number(args)));
            (count_of("%") + count_of("{"), each)
        }
        "split" => {
            let pieces = match (argument(1), text) {
                (None, Some(text)) => text.split_whitespace().count(),
                (separator, _) => count_of(separator.unwrap_or("")) + 1,
            };
            (pieces, ELEMENT)
        }
        "lines" | "splitlines" => (count_of("\n") + 1, ELEMENT),
        "batch" | "slice" => (length(first).saturating_add(largest_number(args)), ELEMENT),
        "tojson" => (whole / ELEMENT, 16 * size(first).1),
        "list" | "sort" | "unique" | "map" | "select" | "reject" | "selectattr" | "rejectattr"
        | "groupby"
            if text.is_some() =>
        {
            (length(first), ELEMENT)
        }
        _ => return None,
    };
    // A field is filled with a character of up to four bytes.
    let made = count.saturating_mul(each);
    let made = if name == "format" { made.saturating_mul(4) } else { made };
    Some(whole.saturating_add(made))
}

/// The largest integer among the arguments, those with names included.
fn largest_number(args: &[Value]) -> usize {
    let number = |value: &Value| value.as_usize().unwrap_or(0);
    let named = args.last().filter(|value| value.kind() == ValueKind::Map);
    let named = named.and_then(Value::as_object).and_then(|object| object.try_iter_pairs());
    let named = named.into_iter().flatten().map(|(_, value)| number(&value));
    args.iter().skip(1).map(number).chain(named).max().unwrap_or(0)
}
