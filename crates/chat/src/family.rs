//! Which renderer a template text found in a model file belongs to.

use crate::ChatError;
use crate::markers::{CALL_OPEN, CHANNEL_CLOSE, CHANNEL_OPEN, THINK, TURN_CLOSE, TURN_OPEN};

/// The two template families of Gemma 4. They differ only in the generation prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// E2B and E4B.
    Small,
    /// 12B, 26B-A4B and 31B: without thinking, an empty thought block opens the answer.
    Large,
}

impl Family {
    /// Tells the family of a template found in a model file by the markers it writes.
    ///
    /// Revisions differ in many details, so the text is not compared with a stored one: turn markers together with a
    /// thinking or tool marker make it Gemma 4, and an empty thought block makes it the large family. The template
    /// itself is never run: it is a program from a stranger, and the native renderer follows the current rules.
    ///
    /// # Errors
    /// [`ChatError::ForeignTemplate`] for another model's template.
    pub fn of_template(template: &str) -> Result<Self, ChatError> {
        let has = |marker: &str| template.contains(marker);
        let turns = has(TURN_OPEN) && has(TURN_CLOSE);
        if !turns || !(has(CHANNEL_OPEN) || has(THINK) || has(CALL_OPEN)) {
            return Err(ChatError::ForeignTemplate);
        }
        // Inside a template's string literal the line break is written as an escape.
        let empty_thought = ["\\n", "\n", ""]
            .map(|newline| format!("{CHANNEL_OPEN}thought{newline}{CHANNEL_CLOSE}"))
            .iter()
            .any(|block| template.contains(block.as_str()));
        Ok(if empty_thought { Self::Large } else { Self::Small })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(template: &str, family: Option<Family>) {
        assert_eq!(Family::of_template(template).ok(), family, "{template}");
    }

    #[test]
    fn markers_decide() {
        let small = "{{ '<|turn>' + role }}<turn|>{% if think %}<|think|>{% endif %}'<|channel>thought\\n' + t + '\\n<channel|>'";
        check(small, Some(Family::Small));
        check(&format!("{small}{{{{ '<|channel>thought\\n<channel|>' }}}}"), Some(Family::Large));
        check(&format!("{small}<|channel>thought\n<channel|>"), Some(Family::Large));
        check("<start_of_turn>user\n{{ messages[0].content }}<end_of_turn>", None);
        check("<|turn>{{ x }}<turn|>", None);
        check("", None);
    }
}
