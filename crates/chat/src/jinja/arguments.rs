//! The arguments of a call, taken one by one by position or by name.

use super::machine::Machine;
use super::value::Value;
use crate::ChatError;

#[derive(Clone)]
pub(super) struct Given<'t> {
    /// Not yet taken, first one last.
    positional: Vec<Value>,
    named: Vec<(&'t str, Value)>,
}

impl<'t> Given<'t> {
    pub(super) fn new(mut positional: Vec<Value>, named: Vec<(&'t str, Value)>) -> Self {
        positional.reverse();
        Self { positional, named }
    }

    /// The next argument by position, or the one of this name.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.positional.pop().or_else(|| self.take_named(name))
    }

    pub(super) fn take_named(&mut self, name: &str) -> Option<Value> {
        let place = self.named.iter().position(|(n, _)| *n == name)?;
        Some(self.named.swap_remove(place).1)
    }

    /// All named arguments, in order.
    pub(super) fn take_all_named(&mut self) -> Vec<(&'t str, Value)> {
        std::mem::take(&mut self.named)
    }

    /// The next argument, which must be there.
    pub(super) fn need(
        &mut self,
        machine: &Machine<'_>,
        name: &str,
        of: &str,
    ) -> Result<Value, ChatError> {
        self.take(name).ok_or_else(|| machine.unsupported(format!("`{of}` without `{name}`")))
    }

    /// The next argument, which must be a string.
    pub(super) fn need_text(
        &mut self,
        machine: &Machine<'_>,
        name: &str,
        of: &str,
    ) -> Result<std::rc::Rc<str>, ChatError> {
        match self.need(machine, name, of)? {
            Value::Str(text) => Ok(text),
            other => Err(machine.wrong(of, &other)),
        }
    }

    /// The same arguments for another call, paid for.
    pub(super) fn copy(&self, machine: &mut Machine<'t>) -> Result<Self, ChatError> {
        machine.pay_elements(self.positional.len() + self.named.len() + 1)?;
        Ok(self.clone())
    }

    /// Refuses what is left over.
    pub(super) fn end(&self, machine: &Machine<'_>, of: &str) -> Result<(), ChatError> {
        if self.positional.is_empty() && self.named.is_empty() {
            return Ok(());
        }
        Err(machine.unsupported(format!("`{of}` with that many arguments")))
    }
}
