//! The marker texts of chat formats. Each is a single token in the vocabulary.

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

/// The label after [`CHANNEL_OPEN`] in a thought block.
pub(crate) const THOUGHT_LABEL: &str = "thought\n";

/// Gemma 3.
pub(crate) const OLD_TURN_OPEN: &str = "<start_of_turn>";
pub(crate) const OLD_TURN_CLOSE: &str = "<end_of_turn>";
pub(crate) const OLD_IMAGE: &str = "<start_of_image>";
/// MedGemma's thoughts.
pub(crate) const MEDICAL_OPEN: &str = "<unused94>";
pub(crate) const MEDICAL_CLOSE: &str = "<unused95>";

/// FunctionGemma.
pub(crate) const FUNCTION_OPEN: &str = "<start_function_declaration>";
pub(crate) const FUNCTION_CLOSE: &str = "<end_function_declaration>";
pub(crate) const FUNCTION_CALL_OPEN: &str = "<start_function_call>";
pub(crate) const FUNCTION_CALL_CLOSE: &str = "<end_function_call>";
pub(crate) const FUNCTION_RESPONSE_OPEN: &str = "<start_function_response>";
pub(crate) const FUNCTION_RESPONSE_CLOSE: &str = "<end_function_response>";
pub(crate) const ESCAPE: &str = "<escape>";

/// ChatML.
pub(crate) const IM_START: &str = "<|im_start|>";
pub(crate) const IM_END: &str = "<|im_end|>";
pub(crate) const THINK_OPEN: &str = "<think>";
pub(crate) const THINK_CLOSE: &str = "</think>";
pub(crate) const JSON_CALL_OPEN: &str = "<tool_call>";
pub(crate) const JSON_CALL_CLOSE: &str = "</tool_call>";

/// Llama 3.
pub(crate) const LLAMA_BOS: &str = "<|begin_of_text|>";
pub(crate) const HEADER_OPEN: &str = "<|start_header_id|>";
pub(crate) const HEADER_CLOSE: &str = "<|end_header_id|>";
pub(crate) const EOT: &str = "<|eot_id|>";
pub(crate) const PYTHON_TAG: &str = "<|python_tag|>";
