//! The markup of thoughts and tool calls in model output.

use crate::call::parse_quoted;
use crate::json_call::parse_json_call;
use crate::markers::{
    CALL_CLOSE, CALL_OPEN, CHANNEL_CLOSE, CHANNEL_OPEN, ESCAPE, FUNCTION_CALL_CLOSE,
    FUNCTION_CALL_OPEN, FUNCTION_RESPONSE_OPEN, JSON_CALL_CLOSE, JSON_CALL_OPEN, MEDICAL_CLOSE,
    MEDICAL_OPEN, PYTHON_TAG, QUOTE, RESPONSE_OPEN, THINK_CLOSE, THINK_OPEN, THOUGHT_LABEL,
};
use crate::{Call, ChatError, Tool};
use serde::{Deserialize, Serialize};

/// The markup of a model's output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// Gemma 4: channels, and calls between `<|tool_call>` and `<tool_call|>`.
    #[default]
    Gemma4,
    /// Gemma 3: plain text; MedGemma thinks between `<unused94>` and `<unused95>`.
    Gemma3,
    /// FunctionGemma: calls between `<start_function_call>` and `<end_function_call>`.
    FunctionGemma,
    /// Thoughts between `<think>` tags and JSON calls between `<tool_call>` tags: Qwen, Hermes, and the default for models of
    /// no known family.
    Tagged,
    /// Llama 3: a whole message that is a JSON call, or one that begins with `<|python_tag|>`.
    Llama3,
}

/// How a model writes a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallSyntax {
    /// `call:NAME{key:value,…}`: bare keys, sorted without regard to case, and strings between markers.
    Pairs {
        /// The markers around the call.
        markers: [&'static str; 2],
        /// The marker on both sides of a string.
        quote: &'static str,
    },
    /// `{"name": …, "arguments": {…}}`.
    Json {
        /// The markers around the call, empty if there are none.
        markers: [&'static str; 2],
        /// The key of the arguments.
        arguments: &'static str,
    },
}

/// The markers of an output format. An empty marker is never found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Markup {
    /// Delimiters of a thought.
    pub(crate) thought: [&'static str; 2],
    /// The label after the opening marker of a thought.
    pub(crate) label: &'static str,
    /// What prompts have between a thought and the text.
    pub(crate) after_thought: &'static str,
    /// Delimiters of a call.
    pub(crate) call: [&'static str; 2],
    /// Written when the model waits for a tool's result.
    pub(crate) noise: &'static str,
    /// Whether whitespace next to markers is part of the text.
    pub(crate) keeps_space: bool,
    /// Whether a message can be a call without markers.
    pub(crate) bare_calls: bool,
}

impl Output {
    /// All formats.
    pub const ALL: [Self; 5] =
        [Self::Gemma4, Self::Gemma3, Self::FunctionGemma, Self::Tagged, Self::Llama3];

    /// A stable name, such as `gemma4`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gemma4 => "gemma4",
            Self::Gemma3 => "gemma3",
            Self::FunctionGemma => "function_gemma",
            Self::Tagged => "tagged",
            Self::Llama3 => "llama3",
        }
    }

    /// The format of a [`Self::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|output| output.name() == name)
    }

    /// The markers around a thought, if there are any.
    pub fn thought_markers(self) -> Option<[&'static str; 2]> {
        let [open, close] = self.markup().thought;
        (!open.is_empty()).then_some([open, close])
    }

    /// How calls are written; `None` if the models make none.
    pub fn call_syntax(self) -> Option<CallSyntax> {
        let markers = self.markup().call;
        match self {
            Self::Gemma4 => Some(CallSyntax::Pairs { markers, quote: QUOTE }),
            Self::FunctionGemma => Some(CallSyntax::Pairs { markers, quote: ESCAPE }),
            Self::Tagged => Some(CallSyntax::Json { markers, arguments: "arguments" }),
            // The marker is for code; JSON calls have none.
            Self::Llama3 => Some(CallSyntax::Json { markers: [""; 2], arguments: "parameters" }),
            Self::Gemma3 => None,
        }
    }

    /// The markup of a model with a template of no known family, by the markers in the template.
    pub fn of_template(template: &str) -> Self {
        let has = |marker: &str| template.contains(marker);
        if has(FUNCTION_CALL_OPEN) {
            Self::FunctionGemma
        } else if has(CHANNEL_OPEN) || has(CALL_OPEN) {
            Self::Gemma4
        } else if has(PYTHON_TAG) {
            Self::Llama3
        } else if has(MEDICAL_OPEN) {
            Self::Gemma3
        } else {
            Self::Tagged
        }
    }

    /// Parses the text of a tool call, without its markers. The schemas of `tools` help to repair unquoted strings.
    ///
    /// # Errors
    /// If it breaks the grammar and cannot be repaired.
    pub fn parse_call(self, text: &str, tools: &[Tool]) -> Result<Call, ChatError> {
        match self {
            Self::Gemma4 | Self::Gemma3 => parse_quoted(text, tools, QUOTE, false),
            Self::FunctionGemma => parse_quoted(text, tools, ESCAPE, true),
            Self::Tagged | Self::Llama3 => parse_json_call(text),
        }
    }

    /// What follows the first marker of a thought; empty without markers.
    pub fn thought_label(self) -> &'static str {
        let markup = self.markup();
        if markup.thought[0].is_empty() { "" } else { markup.label }
    }

    /// The markers around a tool call; empty where the markup has none.
    pub fn call_markers(self) -> [&'static str; 2] {
        self.markup().call
    }

    pub(crate) fn markup(self) -> Markup {
        let none = Markup {
            thought: [""; 2],
            label: "\n",
            after_thought: "",
            call: [""; 2],
            noise: "",
            keeps_space: false,
            bare_calls: false,
        };
        match self {
            Self::Gemma4 => Markup {
                thought: [CHANNEL_OPEN, CHANNEL_CLOSE],
                label: THOUGHT_LABEL,
                call: [CALL_OPEN, CALL_CLOSE],
                noise: RESPONSE_OPEN,
                ..none
            },
            Self::Gemma3 => {
                Markup { thought: [MEDICAL_OPEN, MEDICAL_CLOSE], label: THOUGHT_LABEL, ..none }
            }
            Self::FunctionGemma => Markup {
                call: [FUNCTION_CALL_OPEN, FUNCTION_CALL_CLOSE],
                noise: FUNCTION_RESPONSE_OPEN,
                keeps_space: true,
                ..none
            },
            Self::Tagged => Markup {
                thought: [THINK_OPEN, THINK_CLOSE],
                after_thought: "\n\n",
                call: [JSON_CALL_OPEN, JSON_CALL_CLOSE],
                ..none
            },
            Self::Llama3 => Markup { call: [PYTHON_TAG, ""], bare_calls: true, ..none },
        }
    }
}

impl Markup {
    /// The marker that begins with `start`, which must not be empty.
    pub(crate) fn marker(&self, start: &str, in_call: bool) -> Option<&'static str> {
        let close = [self.call[1]];
        let all = [self.thought[0], self.thought[1], self.call[0], self.call[1], self.noise];
        let legal = if in_call { &close[..] } else { &all };
        legal.iter().find(|marker| marker.starts_with(start)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_names_of_their_own() {
        for output in Output::ALL {
            assert_eq!(Output::from_name(output.name()), Some(output));
        }
        assert_eq!(Output::from_name("gemma"), None);
    }

    #[test]
    fn calls_in_each_syntax_are_parsed_by_the_same_format() {
        for output in Output::ALL {
            let text = match output.call_syntax() {
                None => continue,
                Some(CallSyntax::Pairs { quote, .. }) => format!("call:f{{a:{quote}b{quote}}}"),
                Some(CallSyntax::Json { arguments, .. }) => {
                    format!("{{\"name\": \"f\", \"{arguments}\": {{\"a\": \"b\"}}}}")
                }
            };
            let call = output.parse_call(&text, &[]).expect(&text);
            assert_eq!((call.name.as_str(), &call.arguments["a"]), ("f", &"b".into()), "{text}");
        }
    }
}
