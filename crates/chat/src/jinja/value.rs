//! The values of a running template. Containers know how much there is in them, shared parts counted each time they
//! occur, so that the price of walking through one is known before the walk.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::python;

#[derive(Clone)]
pub(super) enum Value {
    Undefined,
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(Rc<str>),
    List(Rc<List>),
    Dict(Rc<Dict>),
    Namespace(Rc<RefCell<HashMap<String, Self>>>),
    Loop(Rc<Loop>),
    /// A macro, by its number.
    Macro(usize),
}

pub(super) struct List {
    pub(super) items: Vec<Value>,
    weight: u64,
    depth: u32,
}

pub(super) struct Dict {
    /// In order of insertion, keys unique.
    pub(super) entries: Vec<(Rc<str>, Value)>,
    places: HashMap<Rc<str>, usize>,
    weight: u64,
    depth: u32,
}

/// What a template sees as `loop`.
pub(super) struct Loop {
    pub(super) index: usize,
    pub(super) items: Rc<List>,
}

impl List {
    pub(super) fn new(items: Vec<Value>) -> Self {
        let (weight, depth) = measure(items.iter());
        Self { items, weight, depth }
    }
}

impl Dict {
    /// A mapping; of entries with the same key the last one counts.
    pub(super) fn new(pairs: impl IntoIterator<Item = (Rc<str>, Value)>) -> Self {
        let mut entries: Vec<(Rc<str>, Value)> = Vec::new();
        let mut places = HashMap::new();
        for (key, value) in pairs {
            match places.get(&key) {
                Some(&place) => entries[place] = (key, value),
                None => {
                    places.insert(key.clone(), entries.len());
                    entries.push((key, value));
                }
            }
        }
        let (weight, depth) = measure(entries.iter().map(|(_, value)| value));
        let keys: usize = entries.iter().map(|(key, _)| key.len() + 1).sum();
        Self { entries, places, weight: weight.saturating_add(keys as u64), depth }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.places.get(key).map(|&place| &self.entries[place].1)
    }
}

fn measure<'v>(values: impl Iterator<Item = &'v Value>) -> (u64, u32) {
    values.fold((1, 1), |(weight, depth), value| {
        (weight.saturating_add(value.weight()), depth.max(value.depth().saturating_add(1)))
    })
}

impl Value {
    /// How many steps it takes to walk through or print the value.
    pub(super) fn weight(&self) -> u64 {
        match self {
            Self::Str(text) => text.len() as u64 + 1,
            Self::List(list) => list.weight,
            Self::Dict(dict) => dict.weight,
            _ => 1,
        }
    }

    /// How deeply containers are nested in it.
    pub(super) fn depth(&self) -> u32 {
        match self {
            Self::List(list) => list.depth,
            Self::Dict(dict) => dict.depth,
            _ => 0,
        }
    }

    pub(super) fn is_true(&self) -> bool {
        match self {
            Self::Undefined | Self::None => false,
            Self::Bool(b) => *b,
            Self::Int(n) => *n != 0,
            Self::Float(x) => *x != 0.0,
            Self::Str(text) => !text.is_empty(),
            Self::List(list) => !list.items.is_empty(),
            Self::Dict(dict) => !dict.entries.is_empty(),
            Self::Namespace(_) | Self::Loop(_) | Self::Macro(_) => true,
        }
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn as_int(&self) -> Option<i128> {
        match self {
            Self::Int(n) => Some(*n),
            Self::Bool(b) => Some(i128::from(*b)),
            _ => None,
        }
    }

    pub(super) fn as_float(&self) -> Option<f64> {
        match self {
            Self::Float(x) => Some(*x),
            other => other.as_int().map(|n| n as f64),
        }
    }

    /// The kind of value, in the words of a message.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Undefined => "an undefined value",
            Self::None => "none",
            Self::Bool(_) => "a boolean",
            Self::Int(_) | Self::Float(_) => "a number",
            Self::Str(_) => "a string",
            Self::List(_) => "a list",
            Self::Dict(_) => "a mapping",
            Self::Namespace(_) => "a namespace",
            Self::Loop(_) => "a loop",
            Self::Macro(_) => "a macro",
        }
    }

    /// `a == b` of Python: numbers by value, containers element by element. Costs the lighter one's weight.
    pub(super) fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) | (Self::Undefined, Self::Undefined) => true,
            (Self::Str(a), Self::Str(b)) => a == b,
            (Self::List(a), Self::List(b)) => {
                a.items.len() == b.items.len()
                    && a.items.iter().zip(&b.items).all(|(a, b)| a.equals(b))
            }
            (Self::Dict(a), Self::Dict(b)) => {
                let same = |(key, value): &(Rc<str>, Self)| {
                    b.get(key).is_some_and(|other| value.equals(other))
                };
                a.entries.len() == b.entries.len() && a.entries.iter().all(same)
            }
            (a, b) => match (a.as_int(), b.as_int()) {
                (Some(a), Some(b)) => a == b,
                _ => a.as_float().is_some() && a.as_float() == b.as_float(),
            },
        }
    }

    /// `str(value)`. Costs the value's weight.
    pub(super) fn display(&self) -> String {
        let mut out = String::new();
        match self {
            Self::Undefined => {}
            Self::Str(text) => out.push_str(text),
            other => other.write_repr(&mut out),
        }
        out
    }

    fn write_repr(&self, out: &mut String) {
        match self {
            Self::Undefined => out.push_str("Undefined"),
            Self::None => out.push_str("None"),
            Self::Bool(true) => out.push_str("True"),
            Self::Bool(false) => out.push_str("False"),
            Self::Int(n) => out.push_str(&n.to_string()),
            Self::Float(x) => out.push_str(&python::float(*x)),
            Self::Str(text) => python::write_str_repr(out, text),
            Self::List(list) => {
                out.push('[');
                for (i, item) in list.items.iter().enumerate() {
                    out.push_str(if i == 0 { "" } else { ", " });
                    item.write_repr(out);
                }
                out.push(']');
            }
            Self::Dict(dict) => {
                out.push('{');
                for (i, (key, item)) in dict.entries.iter().enumerate() {
                    out.push_str(if i == 0 { "" } else { ", " });
                    python::write_str_repr(out, key);
                    out.push_str(": ");
                    item.write_repr(out);
                }
                out.push('}');
            }
            Self::Namespace(_) => out.push_str("<namespace>"),
            Self::Loop(_) => out.push_str("<loop>"),
            Self::Macro(_) => out.push_str("<macro>"),
        }
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Str(text.into())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Str(text.into())
    }
}
