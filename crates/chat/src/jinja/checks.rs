//! The checks that `compile` puts around a template's instructions, and the values they need.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use minijinja::value::{Enumerator, Object, ObjectRepr, ValueKind};
use minijinja::{Error, State, Value};

use super::budget::{Budget, ELEMENT, refused, size};

/// A check that `compile` puts before or after an instruction of a template.
#[derive(Debug, Clone, Copy)]
pub(super) enum Check {
    /// Operands whose text is searched.
    Search,
    /// Operands that are compared.
    Compare,
    /// A value and a text or list in which it is searched.
    Contains,
    /// Operands that are concatenated.
    Concatenate,
    /// Operands of a multiplication, which may repeat one of them.
    Repeat,
    /// A value, start, stop and step: slices.
    Slice,
    /// A new value.
    Adopt,
    /// A value, a namespace and a name: assigns.
    Assign,
    /// A new macro, which the engine keeps until the end.
    Macro,
}

impl Check {
    pub(super) const ALL: [Self; 9] = [
        Self::Search,
        Self::Compare,
        Self::Contains,
        Self::Concatenate,
        Self::Repeat,
        Self::Slice,
        Self::Adopt,
        Self::Assign,
        Self::Macro,
    ];

    /// The name under which templates call the check. It has a space, so that no template can name it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Search => "check search",
            Self::Compare => "check compare",
            Self::Contains => "check contains",
            Self::Concatenate => "check concatenate",
            Self::Repeat => "check repeat",
            Self::Slice => "check slice",
            Self::Adopt => "check adopt",
            Self::Assign => "check assign",
            Self::Macro => "check macro",
        }
    }

    /// The check as a function of templates.
    pub(super) fn function(self, budget: &Arc<Budget>) -> Value {
        Value::from_object(CheckFunction { check: self, budget: Arc::clone(budget) })
    }
}

#[derive(Debug)]
struct CheckFunction {
    check: Check,
    budget: Arc<Budget>,
}

impl Object for CheckFunction {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn call(self: &Arc<Self>, _: &State<'_, '_>, args: &[Value]) -> Result<Value, Error> {
        let budget = &self.budget;
        let sizes = || args.iter().map(|value| size(value).0).fold(0, usize::saturating_add);
        match self.check {
            Check::Search => {
                let strings = args.iter().filter_map(|value| value.as_str());
                budget.read(strings.map(str::len).fold(0, usize::saturating_add))?;
            }
            Check::Compare => {
                budget.read(args.iter().map(|value| size(value).0).min().unwrap_or(0))?;
            }
            Check::Contains => {
                // Maps are not searched.
                let searched = args.iter().filter(|value| value.kind() != ValueKind::Map);
                budget.read(searched.map(|value| size(value).0).fold(0, usize::saturating_add))?;
            }
            Check::Concatenate => {
                if args.iter().any(|value| value.as_str().is_some() || value.as_object().is_some())
                {
                    budget.fits(sizes())?;
                }
            }
            Check::Repeat => {
                for (value, count) in args.iter().zip(args.iter().rev()) {
                    if matches!(value.kind(), ValueKind::String | ValueKind::Seq) {
                        let once = value.as_str().map_or_else(|| size(value).0, str::len);
                        budget.fits(once.saturating_mul(count.as_usize().unwrap_or(0)))?;
                    }
                }
            }
            Check::Slice => return slice(budget, args),
            Check::Adopt => return budget.adopt(args.first().cloned().unwrap_or_default()),
            Check::Assign => {
                let [value, namespace, name] = args else { return Ok(Value::UNDEFINED) };
                let Some(namespace) = namespace.downcast_object_ref::<Namespace>() else {
                    return Err(refused(format!(
                        "can only assign to namespaces, not {}",
                        namespace.kind()
                    )));
                };
                namespace.set(name.as_str().unwrap_or_default(), budget.adopt(value.clone())?);
                return Ok(Value::UNDEFINED);
            }
            Check::Macro => {
                budget.allocate(16 * ELEMENT)?;
                return Ok(Value::UNDEFINED);
            }
        }
        // Unpacking a list puts its first element on top of the stack.
        Ok(Value::from(args.iter().rev().cloned().collect::<Vec<_>>()))
    }
}

/// `value[start:stop:step]`, as Python has it. The engine's slices refer to the value they were cut from, to any depth.
fn slice(budget: &Budget, args: &[Value]) -> Result<Value, Error> {
    let [value, bounds @ ..] = args else { return Ok(Value::UNDEFINED) };
    let mut numbers = [None; 3];
    for (number, bound) in numbers.iter_mut().zip(bounds) {
        if !bound.is_none() && !bound.is_undefined() {
            *number = Some(i64::try_from(bound.clone())?);
        }
    }
    let [start, stop, step] = numbers;
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(refused("cannot slice by step size of 0"));
    }
    budget.read(value.as_str().map_or(0, str::len))?;
    match value.kind() {
        ValueKind::None | ValueKind::Undefined => budget.adopt(Value::from(Vec::<Value>::new())),
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default();
            let (start, stop) = bounds_of(text.chars().count(), start, stop, step);
            let every = usize::try_from(step.unsigned_abs()).unwrap_or(usize::MAX);
            let length = usize::try_from((stop - start).unsigned_abs()).unwrap_or(0);
            let picked: String = if step > 0 {
                let length = if stop > start { length } else { 0 };
                text.chars().skip(to_index(start)).take(length).step_by(every).collect()
            } else {
                // From the character at `start` backwards.
                let length = if stop < start { length } else { 0 };
                let head: Vec<char> =
                    text.chars().take(to_index(start.saturating_add(1))).collect();
                head.into_iter().rev().take(length).step_by(every).collect()
            };
            budget.adopt(Value::from(picked))
        }
        ValueKind::Seq => {
            let (start, stop) = bounds_of(value.len().unwrap_or(0), start, stop, step);
            let inside = |at: &i64| if step > 0 { *at < stop } else { *at > stop };
            let mut items = Vec::new();
            let mut at = Some(start).filter(inside);
            while let Some(index) = at {
                budget.allocate(ELEMENT)?;
                items.push(value.get_item(&Value::from(index))?);
                at = index.checked_add(step).filter(inside);
            }
            budget.adopt(Value::from(items))
        }
        kind => Err(refused(format!("value of type {kind} cannot be sliced"))),
    }
}

fn to_index(number: i64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

/// Start and stop of Python's `slice(start, stop, step).indices(length)`.
fn bounds_of(length: usize, start: Option<i64>, stop: Option<i64>, step: i64) -> (i64, i64) {
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let (lowest, highest) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let clamped = |bound: i64| {
        let bound = if bound < 0 { bound.saturating_add(length) } else { bound };
        bound.clamp(lowest, highest)
    };
    let (first, last) = if step > 0 { (lowest, highest) } else { (highest, lowest) };
    (start.map_or(first, clamped), stop.map_or(last, clamped))
}

/// What `namespace()` returns. Unlike the engine's, it holds no other namespaces, so that none contains itself.
#[derive(Debug, Default)]
pub(super) struct Namespace(Mutex<BTreeMap<Arc<str>, Value>>);

impl Namespace {
    fn set(&self, key: &str, value: Value) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.into(), value);
    }
}

impl Object for Namespace {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        values.get(key.as_str()?).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Enumerator::Values(values.keys().cloned().map(Value::from).collect())
    }
}

/// `namespace(**values)`
pub(super) fn namespace(budget: &Budget, defaults: Option<&Value>) -> Result<Value, Error> {
    let namespace = Namespace::default();
    budget.allocate(4 * ELEMENT)?;
    if let Some(object) = defaults.and_then(Value::as_object) {
        for (key, value) in object.try_iter_pairs().into_iter().flatten() {
            if let Some(key) = key.as_str() {
                namespace.set(key, budget.adopt(value)?);
            }
        }
    }
    Ok(Value::from_object(namespace))
}
