//! Evaluating expressions.

use std::rc::Rc;

use super::arguments::Given;
use super::ast::{Arguments, Expr, Step};
use super::machine::Machine;
use super::value::{Dict, Loop, Value};
use super::{checks, filters, methods, operators, sequences};
use crate::ChatError;

impl<'t> Machine<'t> {
    /// The value of an expression.
    pub(super) fn value(&mut self, expr: &'t Expr) -> Result<Value, ChatError> {
        self.pay(1)?;
        self.nested(|machine| machine.value_inner(expr))
    }

    fn value_inner(&mut self, expr: &'t Expr) -> Result<Value, ChatError> {
        match expr {
            Expr::Const(value) => Ok(value.clone()),
            Expr::Name(name) => self.lookup(name),
            Expr::List(items) => {
                let items = self.values(items)?;
                self.list_of(items).map(Value::List)
            }
            Expr::Dict(entries) => self.dict_literal(entries),
            Expr::Not(inner) => Ok(Value::Bool(!self.value(inner)?.is_true())),
            Expr::Negate(inner) => {
                let value = self.value(inner)?;
                operators::negate(self, &value)
            }
            Expr::Arithmetic(first, rest) => {
                let mut left = self.value(first)?;
                for (operator, right) in rest {
                    let right = self.value(right)?;
                    left = operators::arithmetic(self, *operator, &left, &right)?;
                }
                Ok(left)
            }
            Expr::Compare(first, rest) => {
                let mut left = self.value(first)?;
                for (operator, right) in rest {
                    let right = self.value(right)?;
                    if !operators::compare(self, *operator, &left, &right)? {
                        return Ok(Value::Bool(false));
                    }
                    left = right;
                }
                Ok(Value::Bool(true))
            }
            Expr::And(parts) => self.first_that(parts, false),
            Expr::Or(parts) => self.first_that(parts, true),
            Expr::If(parts) => {
                let (condition, then, otherwise) = &**parts;
                if self.value(condition)?.is_true() {
                    return self.value(then);
                }
                otherwise.as_ref().map_or(Ok(Value::Undefined), |otherwise| self.value(otherwise))
            }
            Expr::Postfix(base, steps) => self.postfix(base, steps),
        }
    }

    fn values(&mut self, items: &'t [Expr]) -> Result<Vec<Value>, ChatError> {
        items.iter().map(|item| self.value(item)).collect()
    }

    /// The first value that is as true as asked for, else the last one.
    fn first_that(&mut self, parts: &'t [Expr], truth: bool) -> Result<Value, ChatError> {
        let mut value = Value::Undefined;
        for part in parts {
            value = self.value(part)?;
            if value.is_true() == truth {
                break;
            }
        }
        Ok(value)
    }

    fn dict_literal(&mut self, entries: &'t [(Expr, Expr)]) -> Result<Value, ChatError> {
        let mut pairs = Vec::new();
        for (key, value) in entries {
            let key = match self.value(key)? {
                Value::Str(key) => key,
                other => return Err(self.wrong("use as a key", &other)),
            };
            pairs.push((key, self.value(value)?));
        }
        self.dict_of(pairs)
    }

    fn postfix(&mut self, base: &'t Expr, steps: &'t [Step]) -> Result<Value, ChatError> {
        let (mut value, mut steps) = match (base, steps) {
            (Expr::Name(name), [Step::Call(arguments), rest @ ..]) => {
                (self.call(name, arguments)?, rest)
            }
            _ => (self.value(base)?, steps),
        };
        while let Some((step, rest)) = steps.split_first() {
            self.pay(1)?;
            (value, steps) = match (step, rest) {
                (Step::Attribute(name), [Step::Call(arguments), rest @ ..]) => {
                    let given = self.given(arguments)?;
                    (methods::call(self, &value, name, given)?, rest)
                }
                (step, rest) => (self.step(value, step)?, rest),
            };
        }
        Ok(value)
    }

    fn step(&mut self, value: Value, step: &'t Step) -> Result<Value, ChatError> {
        match step {
            Step::Attribute(name) => self.attribute(&value, name),
            Step::Item(index) => {
                let index = self.value(index)?;
                self.item(&value, &index)
            }
            Step::Slice(bounds) => {
                let mut values = [None, None, None];
                for (slot, bound) in values.iter_mut().zip(bounds.iter()) {
                    *slot = match bound.as_ref().map(|bound| self.value(bound)).transpose()? {
                        None | Some(Value::None) => None,
                        Some(value) => {
                            Some(value.as_int().ok_or_else(|| self.wrong("slicing", &value))?)
                        }
                    };
                }
                sequences::slice(self, &value, values)
            }
            Step::Call(_) => Err(self.wrong("a call", &value)),
            Step::Filter(name, arguments) => {
                let given = self.given(arguments)?;
                filters::apply(self, name, value, given)
            }
            Step::Test { name, negated, arguments } => {
                let given = self.given(arguments)?;
                Ok(Value::Bool(checks::test(self, name, &value, given)? != *negated))
            }
        }
    }

    fn given(&mut self, arguments: &'t Arguments) -> Result<Given<'t>, ChatError> {
        let positional = self.values(&arguments.positional)?;
        let named =
            arguments.named.iter().map(|(name, value)| Ok((name.as_str(), self.value(value)?)));
        Ok(Given::new(positional, named.collect::<Result<_, ChatError>>()?))
    }

    /// A call of a macro or of one of the functions templates may use.
    fn call(&mut self, name: &'t str, arguments: &'t Arguments) -> Result<Value, ChatError> {
        let mut given = self.given(arguments)?;
        match (self.lookup(name)?, name) {
            (Value::Macro(number), _) => self.call_macro(number, given),
            (Value::Undefined, "range") => sequences::range(self, given),
            (Value::Undefined, "dict" | "namespace") => {
                let mut entries = match given.take("") {
                    None => Vec::new(),
                    Some(Value::Dict(dict)) => {
                        self.pay_elements(dict.entries.len())?;
                        dict.entries.clone()
                    }
                    Some(other) => return Err(self.wrong(name, &other)),
                };
                entries.extend(
                    given.take_all_named().into_iter().map(|(name, value)| (Rc::from(name), value)),
                );
                given.end(self, name)?;
                if name == "dict" { self.dict_of(entries) } else { self.namespace_of(entries) }
            }
            (Value::Undefined, "raise_exception") => {
                let message = given.need(self, "message", name)?;
                Err(ChatError::TemplateRaised { message: self.text_of(&message)?.to_string() })
            }
            (Value::Undefined, _) => Err(self.unsupported(format!("the function `{name}`"))),
            (other, _) => Err(self.wrong("a call", &other)),
        }
    }

    /// `value.name`
    pub(super) fn attribute(&mut self, value: &Value, name: &str) -> Result<Value, ChatError> {
        let found = match value {
            Value::Undefined => return Err(self.wrong(&format!("attribute `{name}`"), value)),
            Value::Dict(dict) => self.entry(dict, name)?,
            Value::Namespace(namespace) => namespace.borrow().get(name).cloned(),
            Value::Loop(state) => loop_attribute(state, name),
            _ => None,
        };
        Ok(found.unwrap_or(Value::Undefined))
    }

    /// `value[index]`
    pub(super) fn item(&mut self, value: &Value, index: &Value) -> Result<Value, ChatError> {
        match (value, index) {
            (Value::Undefined, _) => Err(self.wrong("an index", value)),
            (Value::List(list), index) => {
                let place = index.as_int().and_then(|i| sequences::place(i, list.items.len()));
                Ok(place.map_or(Value::Undefined, |place| list.items[place].clone()))
            }
            (Value::Str(text), index) if index.as_int().is_some() => {
                self.pay(text.len() as u64)?;
                let length = text.chars().count();
                let place = index.as_int().and_then(|i| sequences::place(i, length));
                let found = place.and_then(|place| text.chars().nth(place));
                Ok(found.map_or(Value::Undefined, |c| Value::from(c.to_string())))
            }
            (value, Value::Str(name)) => self.attribute(value, name),
            _ => Ok(Value::Undefined),
        }
    }

    fn entry(&mut self, dict: &Dict, key: &str) -> Result<Option<Value>, ChatError> {
        self.pay(key.len() as u64)?;
        Ok(dict.get(key).cloned())
    }
}

fn loop_attribute(state: &Loop, name: &str) -> Option<Value> {
    let Loop { index, items } = state;
    let length = items.items.len();
    let number = |n: usize| Some(Value::Int(n as i128));
    match name {
        "index" => number(index + 1),
        "index0" => number(*index),
        "revindex" => number(length - index),
        "revindex0" => number(length - index - 1),
        "length" => number(length),
        "first" => Some(Value::Bool(*index == 0)),
        "last" => Some(Value::Bool(index + 1 == length)),
        "previtem" => index.checked_sub(1).map(|previous| items.items[previous].clone()),
        "nextitem" => items.items.get(index + 1).cloned(),
        _ => None,
    }
}
