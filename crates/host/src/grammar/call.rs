//! The grammar of a tool call: a declared name, and arguments that match the tool's schema.
//!
//! Calls are written as the model has learned them. Where they are not JSON, schemas that the notation of a family cannot express have their
//! arguments written in JSON, which the parser of calls understands as well.

use std::fmt::Write as _;

use rullama_api::ApiError;
use rullama_chat::{Output, Tool};
use rullama_tokenizer::Tokenizer;
use serde_json::{Map, Value, json};

use super::{formats::spaced, lark::literal};

/// Objects with more parameters, and deeper ones, are written in JSON.
const MOST_PROPERTIES: usize = 64;
const DEEPEST: usize = 16;

/// A grammar in Lark notation of one call of one of these tools.
///
/// # Errors
/// If models of this kind call no tools.
pub(crate) fn call_grammar(
    output: Output,
    tools: &[Tool],
    tokenizer: &Tokenizer,
) -> Result<String, ApiError> {
    let [open, _] = output.call_markers();
    let open = marker(open, tokenizer);
    let mut rules = Rules { tokenizer, text: String::new(), count: 0 };
    let mut calls = Vec::new();
    for tool in tools {
        let schema = parameters(tool);
        calls.push(match output {
            Output::Tagged | Output::Llama3 => {
                let key = if output == Output::Tagged { "arguments" } else { "parameters" };
                let name = Value::from(tool.name());
                let start = literal(&format!("{{\"name\": {name}, \"{key}\": "));
                format!("{start} {} \"}}\"", json_of(&schema))
            }
            Output::Gemma4 | Output::FunctionGemma => {
                let quoted = output.call_quote().and_then(|quote| {
                    let name = literal(&format!("{}{{", tool.name()));
                    Some(format!("{name} {}", rules.members(&schema, quote, 0)?))
                });
                match quoted {
                    Some(call) => call,
                    // FunctionGemma's parser reads bare words and would keep the quotes of JSON.
                    None if output == Output::FunctionGemma => return Err(unsupported(tool)),
                    None => format!("{} {}", literal(tool.name()), json_of(&schema)),
                }
            }
            _ => {
                let message = "this model calls no tools".to_owned();
                return Err(ApiError::Invalid { message });
            }
        });
    }
    let before = match output {
        Output::Tagged => format!("{open} \"\\n\""),
        Output::Llama3 => String::new(),
        _ => format!("{open} \"call:\""),
    };
    Ok(format!("start: {before} ({})\n{}", calls.join(" | "), rules.text))
}

fn unsupported(tool: &Tool) -> ApiError {
    let name = tool.name();
    let message = format!(
        "this model cannot be held to the parameters of the tool `{name}`: use plain types, enums, arrays and objects, or `tool_choice`: \"auto\""
    );
    ApiError::Invalid { message }
}

/// A marker: its token or, without one, its text.
fn marker(text: &str, tokenizer: &Tokenizer) -> String {
    tokenizer.id_of(text).map_or_else(|| literal(text), |id| format!("<[{id}]>"))
}

/// A value in JSON.
fn json_of(schema: &Value) -> String {
    format!("%json {}", spaced(schema.clone()))
}

/// The schema of a tool's arguments: an object of declared parameters. Without a declaration, there are none.
fn parameters(tool: &Tool) -> Value {
    let mut schema = match tool.function.get("parameters") {
        Some(Value::Object(schema)) => schema.clone(),
        _ => Map::new(),
    };
    schema.entry("type").or_insert(json!("object"));
    let combined = ["$ref", "allOf", "anyOf", "oneOf", "patternProperties"];
    if !combined.iter().any(|key| schema.contains_key(*key)) {
        // Models invent parameters where they may.
        schema.entry("additionalProperties").or_insert(json!(false));
    }
    Value::Object(schema)
}

/// Rules of values in a notation with bare keys and quote markers.
struct Rules<'a> {
    tokenizer: &'a Tokenizer,
    text: String,
    count: usize,
}

/// Keys of a schema that say nothing about values.
const REMARKS: [&str; 8] =
    ["title", "description", "default", "examples", "$schema", "$id", "x-guidance", "deprecated"];

impl Rules<'_> {
    /// A value; `None` where only JSON can express it.
    fn value(&mut self, schema: &Value, quote: &'static str, depth: usize) -> Option<String> {
        let keys = schema.as_object().filter(|_| depth < DEEPEST)?;
        let only = |known: &[&str]| {
            keys.keys().all(|key| known.contains(&key.as_str()) || REMARKS.contains(&key.as_str()))
        };
        if let Some(values) = keys.get("enum").and_then(Value::as_array) {
            let fits = only(&["enum", "type"]) && !values.is_empty();
            let all =
                values.iter().map(|value| self.constant(value, quote)).collect::<Option<Vec<_>>>();
            return Some(format!("({})", all.filter(|_| fits)?.join(" | ")));
        }
        if let Some(value) = keys.get("const") {
            return self.constant(value, quote).filter(|_| only(&["const", "type"]));
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(schemas) = keys.get(key).and_then(Value::as_array) {
                let fits = only(&[key]) && !schemas.is_empty();
                let all = schemas.iter().map(|schema| self.value(schema, quote, depth + 1));
                return Some(format!(
                    "({})",
                    all.collect::<Option<Vec<_>>>().filter(|_| fits)?.join(" | ")
                ));
            }
        }
        let kind = match keys.get("type")? {
            Value::String(kind) => kind.as_str(),
            Value::Array(kinds) => {
                let one = |kind: &Value| {
                    let mut schema = keys.clone();
                    schema.insert("type".to_owned(), kind.clone());
                    self.value(&Value::Object(schema), quote, depth + 1)
                };
                let all = kinds.iter().map(one).collect::<Option<Vec<_>>>();
                return Some(format!("({})", all.filter(|all| !all.is_empty())?.join(" | ")));
            }
            _ => return None,
        };
        match kind {
            "null" if only(&["type"]) => Some("\"null\"".to_owned()),
            "boolean" if only(&["type"]) => Some("(\"true\" | \"false\")".to_owned()),
            "integer" | "number" => Some(format!("%json {schema}")),
            "string" if only(&["type", "minLength", "maxLength"]) => self.string(keys, quote),
            "array" if only(&["type", "items", "minItems", "maxItems"]) => {
                self.array(keys, quote, depth)
            }
            "object" => {
                let members = self.members(schema, quote, depth)?;
                Some(format!("\"{{\" {members}"))
            }
            _ => None,
        }
    }

    fn constant(&self, value: &Value, quote: &'static str) -> Option<String> {
        let quote = marker(quote, self.tokenizer);
        match value {
            Value::String(text) if text.is_empty() => Some(format!("{quote} {quote}")),
            Value::String(text) => Some(format!("{quote} {} {quote}", literal(text))),
            Value::Array(_) | Value::Object(_) => None,
            scalar => Some(literal(&scalar.to_string())),
        }
    }

    /// Text between quote markers. Their characters must not be part of it: nothing escapes them.
    fn string(&self, keys: &Map<String, Value>, quote: &'static str) -> Option<String> {
        let marker = marker(quote, self.tokenizer);
        let bound = |key: &str| keys.get(key).map(Value::as_u64);
        let text = match (bound("minLength"), bound("maxLength")) {
            (None, None) => "/([^<]|<+[^|<])*<*/".to_owned(),
            (least, most) => {
                let least = least.unwrap_or(Some(0))?;
                let most =
                    most.map_or(Some(String::new()), |most| most.map(|most| most.to_string()))?;
                format!("/[^<]{{{least},{most}}}/")
            }
        };
        Some(format!("{marker} {text} {marker}"))
    }

    fn array(
        &mut self,
        keys: &Map<String, Value>,
        quote: &'static str,
        depth: usize,
    ) -> Option<String> {
        let item = self.value(keys.get("items")?, quote, depth + 1)?;
        let item = self.named(&item);
        let bound = |key: &str| keys.get(key).map(Value::as_u64);
        let least = bound("minItems").unwrap_or(Some(0))?;
        let most = bound("maxItems");
        let more = match most {
            None => format!("(\",\" {item}){{{},}}", least.saturating_sub(1)),
            Some(most) => match most?.checked_sub(1)? {
                0 => String::new(),
                most => format!("(\",\" {item}){{{},{most}}}", least.saturating_sub(1)),
            },
        };
        let optional = if least == 0 { "?" } else { "" };
        Some(format!("\"[\" ({item} {more}){optional} \"]\""))
    }

    /// The members of an object and its closing brace, in the order in which the templates write them.
    fn members(&mut self, schema: &Value, quote: &'static str, depth: usize) -> Option<String> {
        let keys = schema.as_object()?;
        let known = ["type", "properties", "required", "additionalProperties"];
        let only =
            keys.keys().all(|key| known.contains(&key.as_str()) || REMARKS.contains(&key.as_str()));
        let is_object = keys.get("type").is_some_and(|kind| kind == "object");
        let closed = !matches!(keys.get("additionalProperties"), Some(Value::Object(_)));
        let none = Map::new();
        let properties = match keys.get("properties") {
            Some(Value::Object(properties)) => properties,
            // An object of anything.
            None if keys.get("additionalProperties") != Some(&Value::Bool(false)) => return None,
            None => &none,
            Some(_) => return None,
        };
        if !(only && is_object && closed) || properties.len() > MOST_PROPERTIES {
            return None;
        }
        let required: Vec<&str> = match keys.get("required") {
            None => Vec::new(),
            Some(list) => list.as_array()?.iter().map(Value::as_str).collect::<Option<_>>()?,
        };
        if !required.iter().all(|name| properties.contains_key(*name)) {
            return None;
        }
        let mut sorted: Vec<(&String, &Value)> = properties.iter().collect();
        sorted.sort_by_cached_key(|(name, _)| name.to_lowercase());
        let mut members = Vec::new();
        for (name, schema) in sorted {
            let is_plain = |c: char| c.is_alphanumeric() || "_-.$".contains(c);
            if name.is_empty() || !name.chars().all(is_plain) {
                return None;
            }
            let value = self.value(schema, quote, depth + 1)?;
            let member = self.named(&format!("{} {value}", literal(&format!("{name}:"))));
            members.push((member, required.contains(&name.as_str())));
        }
        Some(self.sequence(&members))
    }

    /// Members with commas between those that are there, then a brace.
    fn sequence(&mut self, members: &[(String, bool)]) -> String {
        // What may follow the first `n` members, at least one of which is there.
        let mut after = vec!["\"}\"".to_owned()];
        for (member, is_required) in members.iter().rev() {
            let optional = if *is_required { "" } else { "?" };
            let rest = after.last().cloned().unwrap_or_default();
            let rule = self.named(&format!("(\",\" {member}){optional} {rest}"));
            after.push(rule);
        }
        after.reverse();
        let mut first = Vec::new();
        for (number, (member, is_required)) in members.iter().enumerate() {
            first.push(format!("{member} {}", after[number + 1]));
            if *is_required {
                return format!("({})", first.join(" | "));
            }
        }
        first.push("\"}\"".to_owned());
        format!("({})", first.join(" | "))
    }

    /// A rule of its own for an expression.
    fn named(&mut self, expression: &str) -> String {
        let name = format!("v{}", self.count);
        self.count += 1;
        let _ = writeln!(self.text, "{name}: {expression}");
        name
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::formats::{
            Formats,
            tests::{accepts, tokenizer},
        },
        *,
    };

    fn tool(name: &str, parameters: Value) -> Tool {
        let fields = [("name".to_owned(), json!(name)), ("parameters".to_owned(), parameters)];
        Tool { function: fields.into_iter().collect() }
    }

    fn weather() -> Tool {
        tool(
            "weather",
            json!({
                "type": "object",
                "properties": {
                    "unit": { "enum": ["C", "F"] },
                    "city": { "type": "string", "description": "where" },
                    "days": { "type": "integer", "minimum": 1, "maximum": 7 },
                    "tags": { "type": "array", "items": { "type": "string" }, "maxItems": 2 },
                },
                "required": ["city", "unit"],
            }),
        )
    }

    #[track_caller]
    fn check(output: Output, tools: &[Tool], good: &[&str], bad: &[&str]) {
        let tokenizer = tokenizer();
        let grammar = call_grammar(output, tools, &tokenizer).unwrap();
        let mut formats = Formats::default();
        for (texts, wanted) in [(good, true), (bad, false)] {
            for text in texts {
                let constraint = formats.lark(&tokenizer, &grammar).unwrap();
                assert_eq!(accepts(&tokenizer, constraint, text), wanted, "{text} in {grammar}");
            }
        }
    }

    #[test]
    fn calls_in_gemmas_notation() {
        let time = tool("weather_time", json!(null));
        let call = |text: &str| format!("<|tool_call>call:{text}").replace('\'', "<|\"|>");
        let good = [
            "weather{city:'Oslo',unit:'C'}",
            "weather{city:'',days:7,tags:[],unit:'F'}",
            "weather{city:'a < b << c',tags:['x','y'],unit:'F'}",
            "weather_time{}",
        ]
        .map(call);
        let bad = [
            "weather{}",
            "weather{city:'Oslo'}",
            "weather{city:Oslo,unit:'C'}",
            "weather{city:'Oslo',unit:'K'}",
            "weather{city:'Oslo',days:8,unit:'C'}",
            "weather{city:'Oslo',more:1,unit:'C'}",
            "weather{city:'Oslo',tags:['a','b','c'],unit:'C'}",
            "weather_time{a:1}",
            "nobody{}",
        ]
        .map(call);
        let texts =
            |all: &[String]| all.iter().map(String::as_str).map(str::to_owned).collect::<Vec<_>>();
        let (good, bad) = (texts(&good), texts(&bad));
        let good: Vec<&str> = good.iter().map(String::as_str).collect();
        let mut bad: Vec<&str> = bad.iter().map(String::as_str).collect();
        bad.push("Let me see.");
        check(Output::Gemma4, &[weather(), time], &good, &bad);
    }

    #[test]
    fn schemas_of_any_kind_are_written_in_json() {
        let tree = tool(
            "tree",
            json!({
                "type": "object",
                "properties": { "node": { "$ref": "#/$defs/node" } },
                "required": ["node"],
                "$defs": { "node": { "type": "object", "properties": { "left": { "$ref": "#/$defs/node" } }, "additionalProperties": false } },
            }),
        );
        check(
            Output::Gemma4,
            &[tree, weather()],
            &[r#"<|tool_call>call:tree{"node": {"left": {}}}"#],
            &["<|tool_call>call:tree{}", r#"<|tool_call>call:tree{"node": {"left": 1}}"#],
        );
        let pattern = json!({ "type": "object", "properties": { "a": { "type": "string", "pattern": "^x+$" } }, "required": ["a"] });
        check(
            Output::Gemma4,
            &[tool("f", pattern)],
            &[r#"<|tool_call>call:f{"a": "xx"}"#],
            &[r#"<|tool_call>call:f{"a": "y"}"#],
        );
    }

    #[test]
    fn calls_in_json() {
        let tagged = |arguments: &str| {
            format!("<tool_call>\n{{\"name\": \"weather\", \"arguments\": {arguments}}}")
        };
        let (good, bad) =
            (tagged(r#"{"unit": "C", "city": "Oslo"}"#), tagged(r#"{"city": "Oslo"}"#));
        let named = good.replace("weather", "clock");
        check(Output::Tagged, &[weather()], &[&good], &[&bad, &named, "{}"]);
        let bare =
            |text: String| text.replace("<tool_call>\n", "").replace("arguments", "parameters");
        check(Output::Llama3, &[weather()], &[&bare(good)], &[&bare(bad)]);
    }
}
