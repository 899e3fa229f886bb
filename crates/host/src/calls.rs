//! Which tools a reply may call, and whether it must call one.

use rullama_api::ToolChoice;
use rullama_chat::{Conversation, Tool};

/// Leaves the tools in a conversation that may be called; whether one must be.
pub(crate) fn apply(choice: &ToolChoice, conversation: &mut Conversation) -> bool {
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
    is_demanded && !conversation.tools.is_empty()
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
        let check = |choice: ToolChoice, left: &[&str], demanded: bool| {
            let mut conversation = conversation();
            assert_eq!(apply(&choice, &mut conversation), demanded, "{choice:?}");
            let names: Vec<&str> = conversation.tools.iter().map(Tool::name).collect();
            assert_eq!(names, left, "{choice:?}");
        };
        check(ToolChoice::Auto, &["add", "weather"], false);
        check(ToolChoice::None, &[], false);
        check(ToolChoice::Required, &["add", "weather"], true);
        check(ToolChoice::Named("add".into()), &["add"], true);
        let names = || vec!["weather".to_owned()];
        check(ToolChoice::Allowed { names: names(), required: false }, &["weather"], false);
        check(ToolChoice::Allowed { names: names(), required: true }, &["weather"], true);
    }
}
