//! Tool calls that a request demands: the prompt opens the call, and the reply must name a declared tool and end the call.

use rullama_api::ToolChoice;
use rullama_chat::{Conversation, Tool};
use rullama_runtime::{
    Model, RuntimeError,
    generate::{Constraint, ConstraintError},
};
use rullama_tokenizer::Render;

/// What opens and closes a call, as Gemma 4 writes it.
pub(crate) const OPEN: &str = "<|tool_call>";
const CLOSE: &str = "<tool_call|>";

/// The beginning of a call that the prompt contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DemandedCall {
    /// The text the prompt ends with; the reply's parser needs it, too.
    pub(crate) prefix: String,
    /// How the reply may go on: the rest of each name that is allowed, up to its arguments.
    names: Vec<String>,
}

/// Leaves the tools in a conversation that may be called; the call that must be made, if one must.
pub(crate) fn apply(choice: &ToolChoice, conversation: &mut Conversation) -> Option<DemandedCall> {
    let is_among = |tool: &Tool, names: &[String]| names.iter().any(|name| tool.name() == name);
    let is_demanded = match choice {
        ToolChoice::Auto => false,
        ToolChoice::None => {
            conversation.tools.clear();
            false
        }
        ToolChoice::Required => true,
        ToolChoice::Named(name) => {
            conversation.tools.retain(|tool| tool.name() == name);
            true
        }
        ToolChoice::Allowed { names, required } => {
            conversation.tools.retain(|tool| is_among(tool, names));
            *required
        }
    };
    if !is_demanded || conversation.tools.is_empty() {
        return None;
    }
    let names = conversation.tools.iter().map(|tool| format!("{}{{", tool.name()));
    Some(DemandedCall { prefix: format!("{OPEN}call:"), names: names.collect() })
}

impl DemandedCall {
    /// The constraint of a reply that goes on with this call.
    ///
    /// # Errors
    /// If the model has no vocabulary.
    pub(crate) fn constraint(&self, model: &Model) -> Result<Box<dyn Constraint>, RuntimeError> {
        let close = model.tokenizer()?.id_of(CLOSE);
        let rest = self.names.clone();
        Ok(Box::new(CallConstraint { model: model.clone(), close, rest, is_named: false }))
    }
}

/// Holds a reply to a name, then to anything that ends the call.
struct CallConstraint {
    model: Model,
    close: Option<u32>,
    /// What is left of the names that fit so far.
    rest: Vec<String>,
    /// Whether a name is complete.
    is_named: bool,
}

impl CallConstraint {
    /// Whether a name may go on with this token, which may reach into the arguments.
    fn fits(&self, piece: &[u8]) -> bool {
        let one = |rest: &String| {
            let rest = rest.as_bytes();
            rest.starts_with(piece) || piece.starts_with(rest)
        };
        !piece.is_empty() && self.rest.iter().any(one)
    }
}

impl Constraint for CallConstraint {
    fn prepare(&mut self) -> Result<(), ConstraintError> {
        Ok(())
    }

    fn allows(&self, id: u32) -> bool {
        let Ok(tokenizer) = self.model.tokenizer() else { return true };
        if self.is_named {
            // Without a token that closes calls the reply may end anywhere.
            return self.close.is_none() || !tokenizer.is_end(id);
        }
        Some(id) != self.close
            && !tokenizer.is_end(id)
            && self.fits(&tokenizer.piece(id, Render::Plain))
    }

    fn accept(&mut self, id: u32) -> Result<bool, ConstraintError> {
        if self.is_named {
            return Ok(Some(id) == self.close);
        }
        let Ok(tokenizer) = self.model.tokenizer() else { return Ok(true) };
        let piece = tokenizer.piece(id, Render::Plain).into_owned();
        self.is_named = self.rest.iter().any(|rest| piece.starts_with(rest.as_bytes()));
        let rest = std::mem::take(&mut self.rest);
        let left = rest.iter().filter_map(|rest| rest.as_bytes().strip_prefix(&piece[..]));
        // Cut where a token ends: names are ASCII, other texts stay whole characters or drop out.
        self.rest = left.filter_map(|rest| String::from_utf8(rest.to_vec()).ok()).collect();
        if !self.is_named && self.rest.is_empty() {
            return Err(ConstraintError::Lost { why: "the reply names no declared tool".into() });
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversation() -> Conversation {
        let tool = |name: &str| Tool {
            function: [("name".to_owned(), name.into())].into_iter().collect(),
        };
        Conversation { tools: vec![tool("add"), tool("weather")], ..Conversation::default() }
    }

    #[test]
    fn choices() {
        let check = |choice: ToolChoice, left: &[&str], demanded: Option<&[&str]>| {
            let mut conversation = conversation();
            let call = apply(&choice, &mut conversation);
            let names: Vec<&str> = conversation.tools.iter().map(Tool::name).collect();
            assert_eq!(names, left, "{choice:?}");
            let call = call.map(|call| call.names);
            let demanded =
                demanded.map(|names| names.iter().map(|name| name.to_string()).collect());
            assert_eq!(call, demanded, "{choice:?}");
        };
        check(ToolChoice::Auto, &["add", "weather"], None);
        check(ToolChoice::None, &[], None);
        check(ToolChoice::Required, &["add", "weather"], Some(&["add{", "weather{"]));
        check(ToolChoice::Named("add".into()), &["add"], Some(&["add{"]));
        let names = || vec!["weather".to_owned()];
        check(ToolChoice::Allowed { names: names(), required: false }, &["weather"], None);
        check(
            ToolChoice::Allowed { names: names(), required: true },
            &["weather"],
            Some(&["weather{"]),
        );
    }
}
