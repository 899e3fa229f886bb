//! The marker texts of the Gemma 4 chat format. In the vocabulary each of them is a single token.

pub(crate) const BOS: &str = "<bos>";
pub(crate) const TURN_OPEN: &str = "<|turn>";
pub(crate) const TURN_CLOSE: &str = "<turn|>";
pub(crate) const THINK: &str = "<|think|>";
pub(crate) const CHANNEL_OPEN: &str = "<|channel>";
pub(crate) const CHANNEL_CLOSE: &str = "<channel|>";
pub(crate) const TOOL_OPEN: &str = "<|tool>";
pub(crate) const TOOL_CLOSE: &str = "<tool|>";
pub(crate) const CALL_OPEN: &str = "<|tool_call>";
pub(crate) const CALL_CLOSE: &str = "<tool_call|>";
pub(crate) const RESPONSE_OPEN: &str = "<|tool_response>";
pub(crate) const RESPONSE_CLOSE: &str = "<tool_response|>";
pub(crate) const QUOTE: &str = "<|\"|>";
pub(crate) const IMAGE: &str = "<|image|>";
pub(crate) const AUDIO: &str = "<|audio|>";
pub(crate) const VIDEO: &str = "<|video|>";

/// What follows [`CHANNEL_OPEN`] in a thought block.
pub(crate) const THOUGHT_LABEL: &str = "thought\n";
