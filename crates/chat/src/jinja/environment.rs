//! What templates can name: functions, filters and tests. Anything the engine adds later is absent until it is listed here.

use std::sync::Arc;

use minijinja::value::{Kwargs, Rest, Value as JinjaValue};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State, functions, tests};
use serde_json::Value;

use super::budget::{Budget, refused, size};
use super::checks::{Check, namespace};
use super::filters::{self, guarded, method};
use super::messages::unshielded;
use crate::python;
use crate::text::python_json;

/// Steps per rendering: a hundred times the need of a long conversation.
const FUEL: u64 = 20_000_000;
/// The maximum depth of macro calls.
const RECURSION: usize = 100;
/// Bounds of `range` beyond which the engine's arithmetic would overflow.
const RANGE_BOUND: i64 = 1 << 40;

/// The environment of one rendering.
pub(super) fn environment<'s>(budget: &Arc<Budget>) -> Environment<'s> {
    let mut environment = Environment::empty();
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(RECURSION);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    for check in Check::ALL {
        environment.add_global(check.name(), check.function(budget));
    }
    let own = Arc::clone(budget);
    environment.set_unknown_method_callback(move |state, value, name, args| {
        method(&own, state, value, name, args)
    });
    let own = Arc::clone(budget);
    environment.set_formatter(move |out, _, value| match value.as_str() {
        Some(text) => {
            own.allocate(text.len())?;
            out.write_str(text).map_err(Error::from)
        }
        None => {
            let value = own.adopt(value.clone())?;
            // A character of a text is printed as four at most.
            own.allocate(size(&value).0.saturating_mul(4))?;
            out.write_str(&printed(&value)).map_err(Error::from)
        }
    });
    add_functions(&mut environment, budget);
    add_tests(&mut environment);
    for (name, filter) in filters::builtin().into_iter().chain(own_filters()) {
        let own = Arc::clone(budget);
        environment.add_filter(name, move |state: &State<'_, '_>, args: Rest<JinjaValue>| {
            guarded(&own, name, &args, || filter.call(state, &args))
        });
    }
    environment
}

fn add_functions(environment: &mut Environment<'_>, budget: &Arc<Budget>) {
    environment.add_function("raise_exception", |message: String| -> Result<String, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, message))
    });
    let own = Arc::clone(budget);
    environment.add_function("namespace", move |defaults: Option<JinjaValue>| {
        namespace(&own, defaults.as_ref())
    });
    let own = Arc::clone(budget);
    environment.add_function("dict", move |value: Option<JinjaValue>, update: Kwargs| {
        own.adopt(functions::dict(value, update)?)
    });
    let own = Arc::clone(budget);
    let range = JinjaValue::from_function(functions::range);
    let checked_range = move |state: &State<'_, '_>, args: Rest<JinjaValue>| {
        if args
            .iter()
            .any(|n| n.as_i64().is_none_or(|n| !(-RANGE_BOUND..=RANGE_BOUND).contains(&n)))
        {
            return Err(refused("range has too many elements"));
        }
        own.adopt(range.call(state, &args)?)
    };
    environment.add_function("range", checked_range);
}

fn add_tests(environment: &mut Environment<'_>) {
    environment.add_test("undefined", tests::is_undefined);
    environment.add_test("defined", tests::is_defined);
    environment.add_test("none", tests::is_none);
    environment.add_test("boolean", tests::is_boolean);
    environment.add_test("odd", tests::is_odd);
    environment.add_test("even", tests::is_even);
    environment.add_test("divisibleby", tests::is_divisibleby);
    environment.add_test("number", tests::is_number);
    environment.add_test("integer", tests::is_integer);
    environment.add_test("float", tests::is_float);
    environment.add_test("string", tests::is_string);
    environment.add_test("sequence", tests::is_sequence);
    environment.add_test("iterable", tests::is_iterable);
    environment.add_test("mapping", tests::is_mapping);
    environment.add_test("startingwith", tests::is_startingwith);
    environment.add_test("endingwith", tests::is_endingwith);
    environment.add_test("sameas", tests::is_sameas);
    environment.add_test("in", tests::is_in);
    environment.add_test("true", tests::is_true);
    environment.add_test("false", tests::is_false);
    environment.add_test("filter", tests::is_filter);
    environment.add_test("test", tests::is_test);
    for name in ["eq", "equalto", "=="] {
        environment.add_test(name, tests::is_eq);
    }
    for name in ["ne", "!="] {
        environment.add_test(name, tests::is_ne);
    }
    for name in ["lt", "lessthan", "<"] {
        environment.add_test(name, tests::is_lt);
    }
    for name in ["le", "<="] {
        environment.add_test(name, tests::is_le);
    }
    for name in ["gt", "greaterthan", ">"] {
        environment.add_test(name, tests::is_gt);
    }
    for name in ["ge", ">="] {
        environment.add_test(name, tests::is_ge);
    }
}

/// Filters with Python's formatting of values, whitespace and key order.
fn own_filters() -> Vec<(&'static str, JinjaValue)> {
    let json = |value: JinjaValue, options: Kwargs| {
        let invalid = |error| {
            Error::new(ErrorKind::BadSerialization, "a value that JSON cannot hold")
                .with_source(error)
        };
        let value: Value = serde_json::to_value(&value).map_err(invalid)?;
        let indent = options.get::<Option<usize>>("indent")?;
        Ok::<_, Error>(python_json(&value, indent.map(|width| width.min(16))))
    };
    let trim = |value: JinjaValue, chars: Option<String>| {
        let text = printed(&value);
        match chars {
            Some(chars) => text.trim_matches(|c| chars.contains(c)).to_owned(),
            None => python::strip(&text).to_owned(),
        }
    };
    let dictsort = |map: JinjaValue| {
        let mut pairs = Vec::new();
        for key in map.try_iter()? {
            let value = map.get_item(&key)?;
            pairs.push((unshielded(&printed(&key)).text().to_lowercase(), vec![key, value]));
        }
        pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok::<_, Error>(pairs.into_iter().map(|(_, pair)| pair).collect::<Vec<_>>())
    };
    vec![
        ("tojson", JinjaValue::from_function(json)),
        ("upper", JinjaValue::from_function(|value: JinjaValue| printed(&value).to_uppercase())),
        ("lower", JinjaValue::from_function(|value: JinjaValue| printed(&value).to_lowercase())),
        ("string", JinjaValue::from_function(|value: JinjaValue| printed(&value))),
        ("trim", JinjaValue::from_function(trim)),
        ("dictsort", JinjaValue::from_function(dictsort)),
    ]
}

/// `str(value)`; empty for an undefined value.
fn printed(value: &JinjaValue) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None if value.is_undefined() => String::new(),
        None => match serde_json::to_value(value) {
            Ok(json) => python::display(&json),
            Err(_) => value.to_string(),
        },
    }
}
