//! What replies are constrained to, prepared for a model's vocabulary once.

use std::collections::VecDeque;

use rullama_api::{ApiError, Format, Grammar};
use rullama_chat::Output;
use rullama_guidance::{CallFormat, Format as Guided, TextFormat};
use rullama_runtime::generate::{Constraint, ConstraintError, JsonFormat};
use rullama_tokenizer::Tokenizer;
use serde_json::{Value, json};

use super::{gbnf, lark};

/// Preparing one reads the whole vocabulary; clients send the same few again and again.
const KEPT: usize = 16;

/// White space between values: a blank, or a new line with its indentation. Small models never leave longer ones.
const SPACE: &str = r" |\n {0,16}";

/// The formats of the latest requests.
#[derive(Default)]
pub(crate) struct Formats(VecDeque<(Guided, JsonFormat)>);

impl Formats {
    /// The constraint of a request; none where it wants text.
    pub(crate) fn constraint(
        &mut self,
        tokenizer: &Tokenizer,
        format: &Format,
    ) -> Result<Option<Box<dyn Constraint>>, ApiError> {
        let text = match format {
            Format::Text => return Ok(None),
            Format::Json => TextFormat::Json(spaced(json!({ "type": "object" }))),
            Format::Schema(schema) => TextFormat::Json(spaced(schema.clone())),
            Format::Grammar(Grammar::Lark(text)) => {
                TextFormat::Lark(lark::checked(text)?.to_owned())
            }
            Format::Grammar(Grammar::Gbnf(text)) => {
                let converted = gbnf::to_lark(text).map_err(|error| ApiError::Invalid {
                    message: format!("this grammar is not supported: {error}"),
                })?;
                TextFormat::Lark(converted)
            }
            Format::Grammar(Grammar::Regex(pattern)) => {
                TextFormat::Regex { pattern: pattern.clone(), flags: String::new() }
            }
            Format::Grammar(Grammar::Choice(texts)) => TextFormat::Lark(lark::choice(texts)),
        };
        let format = Guided { text: Some(text), calls: None };
        self.compiled(tokenizer, Output::default(), format).map(Some)
    }

    /// A constraint to a call.
    pub(crate) fn call(
        &mut self,
        tokenizer: &Tokenizer,
        call: &CallFormat,
    ) -> Result<Box<dyn Constraint>, ApiError> {
        let format = Guided { text: None, calls: Some(call.clone()) };
        self.compiled(tokenizer, call.output, format)
    }

    fn compiled(
        &mut self,
        tokenizer: &Tokenizer,
        output: Output,
        format: Guided,
    ) -> Result<Box<dyn Constraint>, ApiError> {
        if let Some((_, known)) = self.0.iter().find(|(known, _)| *known == format) {
            return Ok(known.constraint());
        }
        let invalid = |error: ConstraintError| ApiError::Invalid { message: error.to_string() };
        let compiled = JsonFormat::compile(tokenizer, output, &format).map_err(invalid)?;
        let constraint = compiled.constraint();
        if self.0.len() >= KEPT {
            self.0.pop_front();
        }
        self.0.push_back((format, compiled));
        Ok(constraint)
    }
}

/// A schema whose white space is bounded, unless it says otherwise.
fn spaced(mut schema: Value) -> Value {
    if let Some(keys) = schema.as_object_mut() {
        keys.entry("x-guidance").or_insert(json!({ "whitespace_pattern": SPACE }));
    }
    schema
}

#[cfg(test)]
pub(super) mod tests {
    use rullama_gguf::Gguf;
    use rullama_runtime::vocabulary;
    use rullama_source::MemorySource;
    use rullama_tokenizer::Special;

    use super::*;

    /// The tokenizer of the demo model.
    pub(in super::super) fn tokenizer() -> Tokenizer {
        let source = std::rc::Rc::new(MemorySource::new("demo", rullama::demo_gguf().unwrap()));
        let gguf = pollster::block_on(Gguf::open(source)).unwrap();
        vocabulary::tokenizer(&gguf).unwrap()
    }

    /// Whether a constraint allows a text, and nothing but its end after it.
    pub(in super::super) fn accepts(
        tokenizer: &Tokenizer,
        mut constraint: Box<dyn Constraint>,
        text: &str,
    ) -> bool {
        for id in tokenizer.encode(text, Special::Parse) {
            constraint.prepare().unwrap();
            if !constraint.allows(id) {
                return false;
            }
            if constraint.accept(id).unwrap() {
                // Complete: there must be nothing left, which the next token would show.
                continue;
            }
        }
        constraint
            .prepare()
            .is_ok_and(|()| tokenizer.end_of_generation().iter().any(|end| constraint.allows(*end)))
    }

    fn check(format: &Format, good: &[&str], bad: &[&str]) {
        let tokenizer = tokenizer();
        let mut formats = Formats::default();
        for (texts, wanted) in [(good, true), (bad, false)] {
            for text in texts {
                let constraint = formats.constraint(&tokenizer, format).unwrap().unwrap();
                assert_eq!(accepts(&tokenizer, constraint, text), wanted, "{text} in {format:?}");
            }
        }
    }

    #[test]
    fn schemas_grammars_and_expressions() {
        let schema = json!({ "type": "object", "properties": { "a": { "type": "integer" } }, "required": ["a"] });
        check(&Format::Schema(schema), &[r#"{"a": 1}"#], &["{}", r#"{"a": "1"}"#, "1"]);
        check(&Format::Json, &["{}"], &["[]", "1"]);
        let regex = Grammar::Regex(r"[a-c]{2}-\d+".to_owned());
        check(&Format::Grammar(regex), &["ab-1", "cc-42"], &["ab", "xb-1", "ab-1x"]);
        let choice = Grammar::Choice(vec!["yes".to_owned(), "no \"never\"".to_owned()]);
        check(&Format::Grammar(choice), &["yes", "no \"never\""], &["no", "maybe"]);
        let lark = Grammar::Lark("%llguidance {}\nstart: \"a\" (\",\" \"a\")*\n".to_owned());
        check(&Format::Grammar(lark), &["a", "a,a,a"], &["", "b", "a,"]);
    }

    #[test]
    fn gbnf() {
        let flat = r#"root ::= greeting " " name "!"
            # two alternatives
            greeting ::= "Hello" | "Hi"
            name ::= [A-Z] [a-z]{1,3}"#;
        check(
            &Format::Grammar(Grammar::Gbnf(flat.to_owned())),
            &["Hello Bob!", "Hi Anna!"],
            &["Hey Bob!", "Hi bob!", "Hi Annabel!", "Hi Bob"],
        );
        let nested = r#"root ::= list ws
            list ::= "[" ( item ("," item)* )? "]"
            item ::= [0-9]+ | list
            ws ::= [ \t\n]*"#;
        check(
            &Format::Grammar(Grammar::Gbnf(nested.to_owned())),
            &["[]", "[1,[2,[]],33]"],
            &["[", "[1,]", "1", "[a]"],
        );
        let odd = "root ::= .{2} \"\\\"/\\u00e9\" [^\\]a-c\\x41]? | \"-\"{3,} |\n \"\"";
        check(
            &Format::Grammar(Grammar::Gbnf(odd.to_owned())),
            &["xy\"/é", "//\"/éd", "---", "----", ""],
            &["xy\"/éa", "xy\"/éA", "xy\"/é]", "--"],
        );
    }

    #[test]
    fn what_is_refused() {
        let tokenizer = tokenizer();
        for grammar in [
            Grammar::Gbnf("root ::= nobody".to_owned()),
            Grammar::Gbnf("start ::= \"x\"".to_owned()),
            Grammar::Gbnf("root ::= (\"x\"".to_owned()),
            Grammar::Gbnf("root ::= \"x".to_owned()),
            Grammar::Gbnf("root ::= [a".to_owned()),
            Grammar::Gbnf("root ::= \"x\"{5,2}".to_owned()),
            Grammar::Gbnf("root ::= \"x\"{99999999}".to_owned()),
            Grammar::Gbnf("root = \"x\"".to_owned()),
            Grammar::Gbnf(format!("root ::= {}", "(".repeat(10_000))),
            Grammar::Lark("%llguidance {}\nnothing".to_owned()),
            Grammar::Lark(format!("%llguidance {{}}\nstart: {}", "(".repeat(1000))),
            Grammar::Lark("%llguidance {}\n".to_owned() + &"a: \"b\"\n".repeat(100_000)),
            Grammar::Regex("(".to_owned()),
        ] {
            let refused =
                Formats::default().constraint(&tokenizer, &Format::Grammar(grammar.clone()));
            let Err(ApiError::Invalid { message }) = refused else { panic!("{grammar:?}") };
            let kinds =
                ["this grammar is not supported", "this regular expression is not supported"];
            assert!(kinds.iter().any(|kind| message.starts_with(kind)), "{message}");
        }
    }
}
