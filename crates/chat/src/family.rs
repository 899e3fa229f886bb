//! Detects the family of a template found in a model file.

use crate::markers::{
    CHANNEL_CLOSE, CHANNEL_OPEN, FUNCTION_OPEN, HEADER_OPEN, IM_END, IM_START, OLD_TURN_CLOSE,
    OLD_TURN_OPEN, THINK, TURN_CLOSE, TURN_OPEN,
};
use crate::{ChatError, Output};

/// A family of chat templates that is rendered natively.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Family {
    /// Gemma 4 E2B and E4B.
    Small,
    /// Gemma 4 12B, 26B-A4B and 31B: without thinking, an empty thought block precedes the reply.
    Large,
    /// Gemma 3.
    Gemma3,
    /// MedGemma: Gemma 3 with thinking.
    MedGemma,
    /// FunctionGemma, as documented.
    FunctionGemma,
    /// FunctionGemma, as Ollama renders it.
    FunctionGemmaOllama,
    /// TranslateGemma: Gemma 3 with an instruction around texts with language codes.
    TranslateGemma,
    /// ChatML without a default system message.
    ChatMl,
    /// SmolLM2: ChatML.
    SmolLm2,
    /// Qwen 1.5 and 2: ChatML.
    Qwen2,
    /// Qwen 2.5: ChatML with tools.
    Qwen25,
    /// Qwen 3: ChatML with tools and thinking.
    Qwen3,
    /// Llama 3: headers, without tools.
    Llama3,
    /// Llama 3.1 to 3.3: headers, a date, tools.
    Llama31,
}

/// The longest template, in bytes, that is accepted as plain ChatML. Longer ones do more.
const PLAIN_CHATML: usize = 400;

impl Family {
    /// All families.
    pub const ALL: [Self; 14] = [
        Self::Small,
        Self::Large,
        Self::Gemma3,
        Self::MedGemma,
        Self::FunctionGemma,
        Self::FunctionGemmaOllama,
        Self::TranslateGemma,
        Self::ChatMl,
        Self::SmolLm2,
        Self::Qwen2,
        Self::Qwen25,
        Self::Qwen3,
        Self::Llama3,
        Self::Llama31,
    ];

    /// Detects the family of a template by the markers it writes; `None` for a Gemma 4 template without thinking, as
    /// fine-tuned models have.
    ///
    /// Revisions differ in many details, so the text is not compared with a stored one: turn markers identify Gemma 4, and an
    /// empty thought block its large family. The template is not run here: the native renderer follows the current rules.
    /// [`ChatTemplate`](crate::ChatTemplate) runs templates of no known family.
    ///
    /// # Errors
    /// [`ChatError::ForeignTemplate`] for a template of no known family.
    pub fn of_template(template: &str) -> Result<Option<Self>, ChatError> {
        let has = |marker: &str| template.contains(marker);
        if has(TURN_OPEN) && has(TURN_CLOSE) {
            return Ok(Self::of_gemma4(template));
        }
        let family = if has(OLD_TURN_OPEN) && has(OLD_TURN_CLOSE) {
            Self::of_gemma3(template)
        } else if has(IM_START) && has(IM_END) {
            Self::of_chatml(template)
        } else if has(HEADER_OPEN) && has("<|eot_id|>") {
            Self::of_llama(template)
        } else {
            None
        };
        family.map(Some).ok_or(ChatError::ForeignTemplate)
    }

    /// Detects the family of a model without a template by its vocabulary; `None` for Gemma 4, whose families share one, and
    /// where no token is conclusive.
    pub fn of_vocabulary(has: impl Fn(&str) -> bool) -> Option<Self> {
        if has(TURN_OPEN) {
            None
        } else if has(FUNCTION_OPEN) {
            Some(Self::FunctionGemma)
        } else if has(OLD_TURN_OPEN) {
            Some(Self::Gemma3)
        } else if has(HEADER_OPEN) {
            Some(Self::Llama31)
        } else if has(IM_START) {
            Some(if has("<think>") { Self::Qwen3 } else { Self::ChatMl })
        } else {
            None
        }
    }

    /// The markup of thoughts and calls in the family's output.
    pub fn output(self) -> Output {
        match self {
            Self::Small | Self::Large => Output::Gemma4,
            Self::Gemma3 | Self::MedGemma | Self::TranslateGemma => Output::Gemma3,
            Self::FunctionGemma | Self::FunctionGemmaOllama => Output::FunctionGemma,
            Self::ChatMl | Self::SmolLm2 | Self::Qwen2 | Self::Qwen25 | Self::Qwen3 => {
                Output::Tagged
            }
            Self::Llama3 | Self::Llama31 => Output::Llama3,
        }
    }

    /// The display name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "Gemma 4, small family (E2B, E4B)",
            Self::Large => "Gemma 4, large family (12B, 26B-A4B, 31B)",
            Self::Gemma3 => "Gemma 3",
            Self::MedGemma => "MedGemma",
            Self::FunctionGemma => "FunctionGemma",
            Self::FunctionGemmaOllama => "FunctionGemma (Ollama's form)",
            Self::TranslateGemma => "TranslateGemma",
            Self::ChatMl => "ChatML",
            Self::SmolLm2 => "SmolLM2",
            Self::Qwen2 => "Qwen 2",
            Self::Qwen25 => "Qwen 2.5",
            Self::Qwen3 => "Qwen 3",
            Self::Llama3 => "Llama 3",
            Self::Llama31 => "Llama 3.1",
        }
    }

    /// Whether templates of the family declare tools to the model.
    pub fn has_tools(self) -> bool {
        matches!(
            self,
            Self::Small
                | Self::Large
                | Self::FunctionGemma
                | Self::FunctionGemmaOllama
                | Self::Qwen25
                | Self::Qwen3
                | Self::Llama31
        )
    }

    /// Whether models of the family support thinking.
    pub fn thinks(self) -> bool {
        matches!(self, Self::Small | Self::Large | Self::MedGemma | Self::Qwen3)
    }

    fn of_gemma4(template: &str) -> Option<Self> {
        // String literals of templates contain the line break as an escape.
        let empty_thought = ["\\n", "\n", ""]
            .map(|newline| format!("{CHANNEL_OPEN}thought{newline}{CHANNEL_CLOSE}"))
            .iter()
            .any(|block| template.contains(block.as_str()));
        let thinks = template.contains(CHANNEL_OPEN) || template.contains(THINK);
        thinks.then_some(if empty_thought { Self::Large } else { Self::Small })
    }

    fn of_gemma3(template: &str) -> Option<Self> {
        if template.contains(FUNCTION_OPEN) {
            return Some(Self::FunctionGemma);
        }
        if template.contains("source_lang_code") {
            return Some(Self::TranslateGemma);
        }
        // Gemma 2 has the same markers, but refuses system messages.
        let knows_system = template.contains("'system'") || template.contains("\"system\"");
        (knows_system && !template.contains("System role not supported")).then_some(Self::Gemma3)
    }

    fn of_chatml(template: &str) -> Option<Self> {
        let has = |text: &str| template.contains(text);
        let hermes_tools = has("<tool_call>") && has("<tools>");
        if hermes_tools && has("enable_thinking") {
            Some(Self::Qwen3)
        } else if hermes_tools && has("You are Qwen, created by Alibaba Cloud.") {
            Some(Self::Qwen25)
        } else if has("named SmolLM, trained by Hugging Face") && !has("tools") {
            Some(Self::SmolLm2)
        } else if has("You are a helpful assistant") && !has("tools") {
            Some(Self::Qwen2)
        } else {
            let plain = template.len() <= PLAIN_CHATML && !has("You are") && !has("tools");
            plain.then_some(Self::ChatMl)
        }
    }

    fn of_llama(template: &str) -> Option<Self> {
        let has = |text: &str| template.contains(text);
        if has("Cutting Knowledge Date") {
            Some(Self::Llama31)
        } else {
            (!has("tools") && !has("You are")).then_some(Self::Llama3)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(template: &str, family: Option<Family>) {
        assert_eq!(Family::of_template(template).unwrap(), family, "{template}");
    }

    #[test]
    fn markers_identify_the_family() {
        let small = "{{ '<|turn>' + role }}<turn|>{% if think %}<|think|>{% endif %}'<|channel>thought\\n' + t + '\\n<channel|>'";
        check(small, Some(Family::Small));
        check(&format!("{small}{{{{ '<|channel>thought\\n<channel|>' }}}}"), Some(Family::Large));
        check(&format!("{small}<|channel>thought\n<channel|>"), Some(Family::Large));
        check("<|turn>{{ x }}<turn|>", None);
        let gemma = "{% if messages[0]['role'] == 'system' %}<start_of_turn>{{ x }}<end_of_turn>";
        check(gemma, Some(Family::Gemma3));
        check(&format!("{gemma}<start_function_declaration>"), Some(Family::FunctionGemma));
        check(&format!("{gemma}{{{{ c['source_lang_code'] }}}}"), Some(Family::TranslateGemma));
        let chatml = "{{ '<|im_start|>' + role }}<|im_end|>";
        check(chatml, Some(Family::ChatMl));
        check(&format!("{chatml}You are a helpful assistant"), Some(Family::Qwen2));
        check(
            &format!("{chatml}<tools><tool_call>{{% if enable_thinking %}}"),
            Some(Family::Qwen3),
        );
        let llama = "<|start_header_id|>{{ x }}<|eot_id|>";
        check(llama, Some(Family::Llama3));
        check(&format!("{llama}Cutting Knowledge Date"), Some(Family::Llama31));
        for (tokens, family) in [
            (&["<|turn>", "<start_of_turn>"][..], None),
            (&["<start_of_turn>"], Some(Family::Gemma3)),
            (&["<start_of_turn>", "<start_function_declaration>"], Some(Family::FunctionGemma)),
            (&["<|im_start|>"], Some(Family::ChatMl)),
            (&["<|im_start|>", "<think>"], Some(Family::Qwen3)),
            (&["<|start_header_id|>"], Some(Family::Llama31)),
            (&[], None),
        ] {
            assert_eq!(Family::of_vocabulary(|text| tokens.contains(&text)), family);
        }
        for foreign in [
            "<start_of_turn>user\n{{ messages[0].content }}<end_of_turn>",
            "{{ raise_exception('System role not supported') }}'system'<start_of_turn><end_of_turn>",
            "<|im_start|><|im_end|>You are Bob",
            "<|turn>{{ x }}",
            "[INST] {{ x }} [/INST]",
            "",
        ] {
            assert!(Family::of_template(foreign).is_err(), "{foreign}");
        }
    }
}
