//! Tool declarations: JSON schemas in Gemma 4's notation.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::format::{self, Keys, comma, quoted, sorted};
use crate::markers::{QUOTE, TOOL_CLOSE, TOOL_OPEN};
use crate::message::kind_of;
use crate::python::{display, truthy};
use crate::{ChatError, Prompt, Tool};

/// Schema keywords, which are not taken for properties in an object schema without `properties`.
const STANDARD_KEYS: [&str; 5] = ["description", "type", "properties", "required", "nullable"];

/// Writes the declaration of one tool, markers included.
///
/// `clean` drops quote markers from descriptions, where they would end the string.
pub(crate) fn declare(out: &mut Prompt, tool: &Tool, clean: bool) -> Result<(), ChatError> {
    let writer = Declaration { tool: tool.name(), clean };
    let function = &tool.function;
    out.trusted(TOOL_OPEN);
    out.trusted("declaration:");
    out.untrusted(&text_of(function.get("name")));
    out.trusted("{description:");
    writer.description(out, function.get("description"));
    if let Some(parameters) = function.get("parameters").filter(|p| truthy(p)) {
        writer.parameters(out, parameters)?;
    }
    if let Some(response) = function.get("response") {
        writer.response(out, response);
    }
    out.trusted("}");
    out.trusted(TOOL_CLOSE);
    Ok(())
}

struct Declaration<'a> {
    tool: &'a str,
    clean: bool,
}

impl Declaration<'_> {
    fn parameters(&self, out: &mut Prompt, schema: &Value) -> Result<(), ChatError> {
        out.trusted(",parameters:{");
        if let Some(properties) = filled(schema, "properties") {
            out.trusted("properties:{");
            self.properties(out, self.object(properties, "properties")?, |_| true)?;
            out.trusted("},");
        }
        if let Some(required) = filled(schema, "required") {
            self.required(out, required)?;
            out.trusted(",");
        }
        if let Some(kind) = filled(schema, "type") {
            out.trusted("type:");
            quoted(out, &upper(Some(kind)));
            out.trusted("}");
        }
        Ok(())
    }

    fn response(&self, out: &mut Prompt, schema: &Value) {
        out.trusted(",response:{");
        if let Some(description) = filled(schema, "description") {
            out.trusted("description:");
            self.description(out, Some(description));
            out.trusted(",");
        }
        if upper(schema.get("type")) == "OBJECT" {
            out.trusted("type:");
            quoted(out, "OBJECT");
            out.trusted("}");
        }
    }

    /// Writes the properties whose names pass the filter.
    fn properties(
        &self,
        out: &mut Prompt,
        schemas: &Map<String, Value>,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<(), ChatError> {
        let schemas = sorted(schemas).into_iter().filter(|(name, _)| wanted(name));
        for (i, (name, schema)) in schemas.enumerate() {
            comma(out, i);
            out.untrusted(name);
            out.trusted(":{");
            self.property(out, schema)?;
            out.trusted("}");
        }
        Ok(())
    }

    fn property(&self, out: &mut Prompt, schema: &Value) -> Result<(), ChatError> {
        let kind = upper(schema.get("type"));
        if let Some(description) = filled(schema, "description") {
            out.trusted("description:");
            self.description(out, Some(description));
            out.trusted(",");
        }
        if let Some(values) = filled(schema, "enum").filter(|_| kind == "STRING") {
            out.trusted("enum:");
            format::value(out, values, Keys::Quoted);
            out.trusted(",");
        }
        if let Some(Value::Object(items)) = filled(schema, "items").filter(|_| kind == "ARRAY") {
            self.items(out, items)?;
            out.trusted(",");
        }
        if filled(schema, "nullable").is_some() {
            out.trusted("nullable:true,");
        }
        if kind == "OBJECT" {
            self.nested(out, schema)?;
        }
        out.trusted("type:");
        quoted(out, &kind);
        Ok(())
    }

    /// The properties of a nested object.
    fn nested(&self, out: &mut Prompt, schema: &Value) -> Result<(), ChatError> {
        match (schema.get("properties"), schema) {
            (Some(Value::Object(properties)), _) => {
                out.trusted("properties:{");
                self.properties(out, properties, |_| true)?;
                out.trusted("},");
            }
            (_, Value::Object(own)) => {
                out.trusted("properties:{");
                self.properties(out, own, |name| !STANDARD_KEYS.contains(&name))?;
                out.trusted("},");
            }
            _ => {}
        }
        if let Some(required) = filled(schema, "required") {
            self.required(out, required)?;
            out.trusted(",");
        }
        Ok(())
    }

    /// The schema of an array's elements: all keywords, sorted.
    fn items(&self, out: &mut Prompt, items: &Map<String, Value>) -> Result<(), ChatError> {
        out.trusted("items:{");
        let keywords = sorted(items).into_iter().filter(|(_, value)| !value.is_null());
        for (i, (keyword, value)) in keywords.enumerate() {
            comma(out, i);
            match (keyword.as_str(), value) {
                ("properties", properties) => {
                    out.trusted("properties:{");
                    if let Value::Object(properties) = properties {
                        self.properties(out, properties, |_| true)?;
                    }
                    out.trusted("}");
                }
                ("required", required) => self.required(out, required)?,
                ("type", Value::String(kind)) => {
                    out.trusted("type:");
                    quoted(out, &kind.to_uppercase());
                }
                ("type", kinds) => {
                    let kinds = self.elements(kinds, "type")?;
                    let kinds = kinds.iter().map(|kind| Value::String(upper(Some(kind)))).collect();
                    out.trusted("type:");
                    format::value(out, &Value::Array(kinds), Keys::Quoted);
                }
                (other, value) => {
                    out.untrusted(other);
                    out.trusted(":");
                    format::value(out, value, Keys::Quoted);
                }
            }
        }
        out.trusted("}");
        Ok(())
    }

    fn required(&self, out: &mut Prompt, names: &Value) -> Result<(), ChatError> {
        out.trusted("required:[");
        for (i, name) in self.elements(names, "required")?.iter().enumerate() {
            comma(out, i);
            quoted(out, &display(name));
        }
        out.trusted("]");
        Ok(())
    }

    fn description(&self, out: &mut Prompt, description: Option<&Value>) {
        let text = text_of(description);
        quoted(out, if self.clean { Cow::from(text.replace(QUOTE, "")) } else { text }.as_ref());
    }

    fn object<'v>(
        &self,
        value: &'v Value,
        keyword: &'static str,
    ) -> Result<&'v Map<String, Value>, ChatError> {
        value.as_object().ok_or_else(|| self.wrong(value, keyword, "an object"))
    }

    /// What the template's `for` iterates over: a list's elements, an object's keys, a string's characters.
    fn elements<'v>(
        &self,
        value: &'v Value,
        keyword: &'static str,
    ) -> Result<Cow<'v, [Value]>, ChatError> {
        match value {
            Value::Array(items) => Ok(Cow::Borrowed(items)),
            Value::Object(map) => Ok(map.keys().map(|key| Value::from(key.as_str())).collect()),
            Value::String(text) => Ok(text.chars().map(|c| Value::from(c.to_string())).collect()),
            other => Err(self.wrong(other, keyword, "a list")),
        }
    }

    fn wrong(&self, value: &Value, keyword: &'static str, expected: &'static str) -> ChatError {
        ChatError::Schema { tool: self.tool.to_owned(), keyword, got: kind_of(value), expected }
    }
}

/// The value of a key, if present and truthy.
fn filled<'v>(schema: &'v Value, key: &str) -> Option<&'v Value> {
    schema.get(key).filter(|value| truthy(value))
}

/// The template's rendering of a value; empty for an absent one.
fn text_of(value: Option<&Value>) -> Cow<'_, str> {
    match value {
        None => Cow::Borrowed(""),
        Some(Value::String(text)) => Cow::Borrowed(text),
        Some(other) => Cow::Owned(display(other)),
    }
}

fn upper(value: Option<&Value>) -> String {
    text_of(value).to_uppercase()
}
