//! Strings and enumerations in Gemma's notation.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::{
    Arguments, Outcome,
    keywords::{bare, count, has_type, lower, sorted},
};
use crate::{
    literal,
    regex::{ANY, Extent, translated},
};

impl Arguments<'_> {
    /// The values of an enumeration that have its type.
    pub(super) fn literals(&mut self, keywords: &Map<String, Value>, values: &[Value]) -> Outcome {
        let kinds: Option<Vec<String>> = keywords.get("type").map(|kind| match kind {
            Value::Array(kinds) => kinds.iter().map(lower).collect(),
            kind => vec![lower(kind)],
        });
        let fits = |value: &&Value| kinds.as_ref().is_none_or(|kinds| has_type(value, kinds));
        let each = values.iter().filter(fits).map(|value| self.literal(value));
        let each = each.collect::<Result<Vec<_>, _>>()?;
        if each.is_empty() {
            return Err("an enumeration of no values".into());
        }
        Ok(self.rule(&each.join(" | ")))
    }

    pub(super) fn literal(&mut self, value: &Value) -> Outcome {
        Ok(match value {
            Value::String(text) => {
                let (quote, _) = self.quote;
                if text.contains(quote) || text.contains(self.close) {
                    return Err(format!("the value {text:?} contains a marker"));
                }
                self.quoted(&literal::escaped(text))
            }
            Value::Array(items) => {
                let items = items.iter().map(|item| self.literal(item));
                let items = items.collect::<Result<Vec<_>, _>>()?.join(" \",\" ");
                format!("\"[\" {items} \"]\"")
            }
            Value::Object(map) => {
                let mut pairs = Vec::new();
                for (key, value) in sorted(map) {
                    let value = self.literal(value)?;
                    pairs.push(format!("{} {value}", literal::string(&format!("{}:", bare(key)?))));
                }
                format!("\"{{\" {} \"}}\"", pairs.join(" \",\" "))
            }
            scalar => literal::string(&scalar.to_string()),
        })
    }

    pub(super) fn string(&mut self, keywords: &Map<String, Value>) -> Outcome {
        let least = count(keywords, "minLength")?.unwrap_or(0);
        let most = count(keywords, "maxLength")?;
        if most.is_some_and(|most| most < least) {
            return Err("maxLength is less than minLength".into());
        }
        let mut parts = Vec::new();
        match (least, most) {
            (0, None) => {}
            (least, None) => parts.push(format!("{ANY}{{{least},}}")),
            (least, Some(most)) => parts.push(format!("{ANY}{{{least},{most}}}")),
        }
        if let Some(pattern) = keywords.get("pattern") {
            let pattern = pattern.as_str().ok_or("pattern must be a text")?;
            parts.push(translated(pattern, "u", Extent::Part).map_err(|error| error.to_string())?);
        }
        if let Some(format) = keywords.get("format").and_then(Value::as_str) {
            let pattern = format_pattern(format);
            parts.push(pattern.ok_or(format!("the format {format:?} is not supported"))?.into());
        }
        if parts.is_empty() {
            parts.push(format!("{ANY}*"));
        }
        let content = match &parts[..] {
            [one] => one.clone(),
            // Each as a terminal of its own: regular expressions have no intersection.
            several => return Ok(self.intersected(several)),
        };
        let expression = self.quoted(&content);
        Ok(self.rule(&expression))
    }

    /// A string whose content matches a pattern and contains no marker. As Lark, for the right side of a rule.
    pub(super) fn quoted(&mut self, content: &str) -> String {
        let terminal = self.terminal(std::slice::from_ref(&content.to_owned()));
        self.between_quotes(&terminal)
    }

    pub(super) fn intersected(&mut self, parts: &[String]) -> String {
        let terminal = self.terminal(parts);
        let expression = self.between_quotes(&terminal);
        self.rule(&expression)
    }

    pub(super) fn between_quotes(&self, terminal: &str) -> String {
        let quote = &self.quote.1;
        if self.quote_is_text() { terminal.into() } else { format!("{quote} {terminal} {quote}") }
    }

    /// Whether the vocabulary has no token for the quote.
    pub(super) fn quote_is_text(&self) -> bool {
        self.quote.1.starts_with('"')
    }

    /// A terminal for the content of strings. Quotes that are text are part of it: the lexer takes the longest match, and would take
    /// most of a quote after the content for content.
    pub(super) fn terminal(&mut self, parts: &[String]) -> String {
        self.count += 1;
        let name = format!("{}_T{}", self.prefix.to_uppercase(), self.count);
        let markers = [self.quote.0, self.close].map(literal::escaped).join("|");
        let forbidden = literal::regex(&format!("{ANY}*({markers}){ANY}*"));
        let parts: Vec<String> = parts.iter().map(|part| literal::regex(part)).collect();
        let content = format!("{} & ~{forbidden}", parts.join(" & "));
        let quote = &self.quote.1;
        let content =
            if self.quote_is_text() { format!("{quote} ({content}) {quote}") } else { content };
        let _ = writeln!(self.rules, "{name}: {content}");
        name
    }
}

/// The pattern of a format.
fn format_pattern(format: &str) -> Option<&'static str> {
    Some(match format {
        "date" => r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])",
        "time" => {
            r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?([zZ]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
        }
        "date-time" => {
            r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])[tT]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?([zZ]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
        }
        "uuid" => r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
        "email" => {
            r"[A-Za-z0-9_+-]+(\.[A-Za-z0-9_+-]+)*@[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)+"
        }
        "ipv4" => {
            r"((25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\.){3}(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
        }
        "uri" => r"[A-Za-z][A-Za-z0-9+.-]*:[A-Za-z0-9._~:\/?#@!$&'()*+,;=%-]+",
        // Numbers' formats, which OpenAPI adds, restrict no text.
        _ => return None,
    })
}
