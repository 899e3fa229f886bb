//! Running statements: scopes, loops, macros, output, and the budget that all of it is paid from.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use serde_json::Map;

use super::arguments::Given;
use super::ast::{Body, For, Macro, Stmt, StmtKind, Target};
use super::data;
use super::value::{Dict, List, Loop, Value};
use crate::{ChatError, Limits};

/// How deeply data may be nested: what a recursive walk can bear.
pub(super) const DATA_DEPTH: u32 = 128;

/// The price of an element of a list or mapping, in steps: so many bytes it takes, about.
const ELEMENT_PRICE: u64 = 16;

/// A running template.
pub(super) struct Machine<'t> {
    limits: &'t Limits,
    variables: HashMap<String, Value>,
    /// The scopes: the template's own first, then those of macros and loops.
    scopes: Vec<HashMap<&'t str, Value>>,
    /// Where the scopes of the running macro begin.
    visible: usize,
    macros: Vec<&'t Macro>,
    steps_left: u64,
    depth: usize,
    line: u32,
}

/// How a statement ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

impl<'t> Machine<'t> {
    pub(super) fn new(
        limits: &'t Limits,
        variables: &Map<String, serde_json::Value>,
    ) -> Result<Self, ChatError> {
        let mut machine = Self {
            limits,
            variables: HashMap::new(),
            scopes: vec![HashMap::new()],
            visible: 0,
            macros: Vec::new(),
            steps_left: limits.steps,
            depth: 0,
            line: 1,
        };
        for (name, value) in variables {
            let value = data::from_json(&mut machine, value, 0)?;
            machine.variables.insert(name.clone(), value);
        }
        Ok(machine)
    }

    pub(super) fn run(mut self, template: &'t Body) -> Result<String, ChatError> {
        let mut out = String::new();
        self.body(template, &mut out)?;
        Ok(out)
    }

    fn body(&mut self, body: &'t [Stmt], out: &mut String) -> Result<Flow, ChatError> {
        for statement in body {
            self.line = statement.line;
            let flow = self.nested(|machine| machine.statement(statement, out))?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&mut self, statement: &'t Stmt, out: &mut String) -> Result<Flow, ChatError> {
        self.pay(1)?;
        match &statement.kind {
            StmtKind::Text(text) => self.write(out, text)?,
            StmtKind::Output(value) => {
                let value = self.value(value)?;
                let text = self.text_of(&value)?;
                self.write(out, &text)?;
            }
            StmtKind::If(branches) => {
                for (condition, body) in branches {
                    if self.value(condition)?.is_true() {
                        return self.body(body, out);
                    }
                }
            }
            StmtKind::For(repeat) => self.repeat(repeat, out)?,
            StmtKind::Set(target, value) => {
                let value = self.value(value)?;
                self.assign(target, value)?;
            }
            StmtKind::SetBlock(target, body) => {
                let mut text = String::new();
                let flow = self.body(body, &mut text)?;
                self.assign(target, Value::from(text))?;
                return Ok(flow);
            }
            StmtKind::Macro(definition) => {
                let number = self.macros.len();
                self.pay(ELEMENT_PRICE)?;
                self.macros.push(definition);
                self.define(&definition.name, Value::Macro(number));
            }
            StmtKind::Block(body) => return self.body(body, out),
            StmtKind::Break => return Ok(Flow::Break),
            StmtKind::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    fn repeat(&mut self, repeat: &'t For, out: &mut String) -> Result<(), ChatError> {
        let iterable = self.value(&repeat.iterable)?;
        let mut items = self.elements(&iterable)?;
        if let Some(filter) = &repeat.filter {
            let mut kept = Vec::new();
            for item in &items.items {
                self.pay_elements(1)?;
                self.scopes.push(HashMap::new());
                self.assign(&repeat.target, item.clone())?;
                if self.value(filter)?.is_true() {
                    kept.push(item.clone());
                }
                self.scopes.pop();
            }
            items = self.list_of(kept)?;
        }
        if items.items.is_empty() {
            return self.body(&repeat.otherwise, out).map(drop);
        }
        for (index, item) in items.items.iter().enumerate() {
            self.pay_elements(1)?;
            self.scopes.push(HashMap::new());
            self.assign(&repeat.target, item.clone())?;
            self.define("loop", Value::Loop(Rc::new(Loop { index, items: items.clone() })));
            let flow = self.body(&repeat.body, out)?;
            self.scopes.pop();
            if flow == Flow::Break {
                break;
            }
        }
        Ok(())
    }

    fn assign(&mut self, target: &'t Target, value: Value) -> Result<(), ChatError> {
        match target {
            Target::Names(names) => match names.as_slice() {
                [name] => self.define(name, value),
                names => {
                    let values = self.elements(&value)?;
                    if values.items.len() != names.len() {
                        return Err(
                            self.wrong("unpacking into a different number of names", &value)
                        );
                    }
                    for (name, value) in names.iter().zip(&values.items) {
                        self.define(name, value.clone());
                    }
                }
            },
            Target::Attribute(name, attribute) => match self.lookup(name)? {
                Value::Namespace(namespace) => {
                    self.storable(&value)?;
                    namespace.borrow_mut().insert(attribute.clone(), value);
                }
                other => return Err(self.wrong("setting an attribute", &other)),
            },
        }
        Ok(())
    }

    /// Calls a macro and returns what it wrote.
    pub(super) fn call_macro(
        &mut self,
        number: usize,
        mut given: Given<'t>,
    ) -> Result<Value, ChatError> {
        self.pay_elements(1)?;
        let definition = self.macros[number];
        let mut scope: HashMap<&'t str, Value> = HashMap::new();
        let mut defaults = Vec::new();
        for (name, default) in &definition.parameters {
            match (given.take(name), default) {
                (Some(value), _) => drop(scope.insert(name, value)),
                (None, Some(default)) => defaults.push((name, default)),
                (None, None) => drop(scope.insert(name, Value::Undefined)),
            }
        }
        given.end(self, &definition.name)?;
        let visible = std::mem::replace(&mut self.visible, self.scopes.len());
        self.scopes.push(scope);
        for (name, default) in defaults {
            let value = self.value(default)?;
            self.define(name, value);
        }
        let line = self.line;
        let mut out = String::new();
        self.body(&definition.body, &mut out)?;
        self.line = line;
        self.scopes.truncate(self.visible);
        self.visible = visible;
        Ok(Value::from(out))
    }

    /// The value of a name: from the scopes of the running macro, the template's own, the variables.
    pub(super) fn lookup(&mut self, name: &str) -> Result<Value, ChatError> {
        self.pay((self.scopes.len() - self.visible) as u64 + 2)?;
        let inner = self.scopes[self.visible..].iter().rev();
        let found = inner.chain(self.scopes.first()).find_map(|scope| scope.get(name));
        Ok(found.or_else(|| self.variables.get(name)).cloned().unwrap_or(Value::Undefined))
    }

    fn define(&mut self, name: &'t str, value: Value) {
        self.scopes
            .last_mut()
            .expect("the template's own scope is never popped")
            .insert(name, value);
    }

    fn write(&mut self, out: &mut String, text: &str) -> Result<(), ChatError> {
        self.pay(text.len() as u64)?;
        if out.len() + text.len() > self.limits.output_bytes {
            return Err(self.exhausted("the length of the output"));
        }
        out.push_str(text);
        Ok(())
    }

    /// Takes steps from the budget.
    pub(super) fn pay(&mut self, steps: u64) -> Result<(), ChatError> {
        match self.steps_left.checked_sub(steps) {
            Some(left) => {
                self.steps_left = left;
                Ok(())
            }
            None => Err(self.exhausted("the step budget")),
        }
    }

    /// Pays for that many elements.
    pub(super) fn pay_elements(&mut self, count: usize) -> Result<(), ChatError> {
        self.pay((count as u64).saturating_mul(ELEMENT_PRICE))
    }

    /// Guards recursion.
    pub(super) fn nested<T>(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<T, ChatError>,
    ) -> Result<T, ChatError> {
        self.depth += 1;
        if self.depth > self.limits.depth {
            return Err(self.exhausted("the depth of calls"));
        }
        let result = run(self);
        self.depth -= 1;
        result
    }

    /// What a value prints as.
    pub(super) fn text_of(&mut self, value: &Value) -> Result<Rc<str>, ChatError> {
        if let Value::Str(text) = value {
            return Ok(text.clone());
        }
        self.pay(value.weight())?;
        Ok(value.display().into())
    }

    /// What a loop over the value runs through.
    pub(super) fn elements(&mut self, value: &Value) -> Result<Rc<List>, ChatError> {
        match value {
            Value::List(list) => Ok(list.clone()),
            Value::Undefined => Ok(Rc::new(List::new(Vec::new()))),
            Value::Dict(dict) => {
                self.list_of(dict.entries.iter().map(|(key, _)| Value::Str(key.clone())).collect())
            }
            Value::Str(text) => {
                self.pay_elements(text.len())?;
                self.list_of(text.chars().map(|c| Value::from(c.to_string())).collect())
            }
            other => Err(self.wrong("iteration", other)),
        }
    }

    /// A new list, paid for.
    pub(super) fn list_of(&mut self, items: Vec<Value>) -> Result<Rc<List>, ChatError> {
        self.pay_elements(items.len())?;
        items.iter().try_for_each(|item| self.storable(item))?;
        Ok(Rc::new(List::new(items)))
    }

    /// A new mapping, paid for.
    pub(super) fn dict_of(&mut self, entries: Vec<(Rc<str>, Value)>) -> Result<Value, ChatError> {
        self.pay_elements(entries.len().saturating_mul(4))?;
        self.pay(entries.iter().map(|(key, _)| key.len() as u64).sum())?;
        entries.iter().try_for_each(|(_, item)| self.storable(item))?;
        Ok(Value::Dict(Rc::new(Dict::new(entries))))
    }

    /// A new namespace.
    pub(super) fn namespace_of(
        &mut self,
        entries: Vec<(Rc<str>, Value)>,
    ) -> Result<Value, ChatError> {
        self.pay_elements(entries.len().saturating_mul(4))?;
        entries.iter().try_for_each(|(_, item)| self.storable(item))?;
        let entries = entries.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        Ok(Value::Namespace(Rc::new(RefCell::new(entries))))
    }

    /// Plain data of bearable depth only: a namespace in a container could come to contain itself.
    fn storable(&self, value: &Value) -> Result<(), ChatError> {
        match value {
            Value::Namespace(_) | Value::Loop(_) => {
                Err(self.wrong("storing in a container", value))
            }
            value if value.depth() >= DATA_DEPTH => Err(self.exhausted("the nesting of data")),
            _ => Ok(()),
        }
    }

    pub(super) fn wrong(&self, operation: &str, value: &Value) -> ChatError {
        ChatError::TemplateType {
            line: self.line,
            operation: operation.to_owned(),
            got: value.kind(),
        }
    }

    pub(super) fn unsupported(&self, what: String) -> ChatError {
        ChatError::TemplateUnsupported { line: self.line, what }
    }

    fn exhausted(&self, limit: &'static str) -> ChatError {
        ChatError::TemplateLimit { line: self.line, limit }
    }
}
