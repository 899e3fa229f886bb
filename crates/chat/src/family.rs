//! Which renderer a template text found in a model file belongs to.

use crate::ChatError;
use crate::markers::{CHANNEL_CLOSE, CHANNEL_OPEN, THINK, TURN_CLOSE, TURN_OPEN};

/// The two template families of Gemma 4. They differ only in the generation prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// E2B and E4B.
    Small,
    /// 12B, 26B-A4B and 31B: without thinking, an empty thought block opens the answer.
    Large,
}

impl Family {
    /// Tells the family of a template found in a model file by the markers it writes; `None` for a Gemma 4 template that
    /// knows nothing of thinking, as fine-tuned models have.
    ///
    /// Revisions differ in many details, so the text is not compared with a stored one: turn markers make it Gemma 4, and
    /// an empty thought block makes it the large family. The template itself is never run: it is a program from a
    /// stranger, and the native renderer follows the current rules.
    ///
    /// # Errors
    /// [`ChatError::ForeignTemplate`] for another model's template.
    pub fn of_template(template: &str) -> Result<Option<Self>, ChatError> {
        let has = |marker: &str| template.contains(marker);
        if !has(TURN_OPEN) || !has(TURN_CLOSE) {
            return Err(ChatError::ForeignTemplate);
        }
        // Inside a template's string literal the line break is written as an escape.
        let empty_thought = ["\\n", "\n", ""]
            .map(|newline| format!("{CHANNEL_OPEN}thought{newline}{CHANNEL_CLOSE}"))
            .iter()
            .any(|block| template.contains(block.as_str()));
        let thinks = has(CHANNEL_OPEN) || has(THINK);
        Ok(thinks.then_some(if empty_thought { Self::Large } else { Self::Small }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(template: &str, family: Option<Family>) {
        assert_eq!(Family::of_template(template).unwrap(), family, "{template}");
    }

    #[test]
    fn markers_decide() {
        let small = "{{ '<|turn>' + role }}<turn|>{% if think %}<|think|>{% endif %}'<|channel>thought\\n' + t + '\\n<channel|>'";
        check(small, Some(Family::Small));
        check(&format!("{small}{{{{ '<|channel>thought\\n<channel|>' }}}}"), Some(Family::Large));
        check(&format!("{small}<|channel>thought\n<channel|>"), Some(Family::Large));
        check("<|turn>{{ x }}<turn|>", None);
        for foreign in
            ["<start_of_turn>user\n{{ messages[0].content }}<end_of_turn>", "<|turn>{{ x }}", ""]
        {
            assert!(Family::of_template(foreign).is_err(), "{foreign}");
        }
    }
}
