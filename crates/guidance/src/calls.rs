//! The grammar of a tool call, in the syntax of the model's family.

use rullama_chat::{CallSyntax, Tool};
use serde_json::{Value, json};

use crate::{CallFormat, GuidanceError, arguments::Arguments, literal};

/// Keys of a schema that may declare properties elsewhere.
const COMBINED: [&str; 5] = ["$ref", "allOf", "anyOf", "oneOf", "patternProperties"];

/// Lark rules, of which `call` is a call of one of the tools.
pub(crate) fn grammar(
    CallFormat { output, tools }: &CallFormat,
    has_marker: &dyn Fn(&str) -> bool,
) -> Result<String, GuidanceError> {
    let syntax = output.call_syntax().ok_or(GuidanceError::NoCalls)?;
    if tools.is_empty() {
        return Err(GuidanceError::NoTools);
    }
    let marker = |name: &str| marker(name, has_marker);
    let (CallSyntax::Pairs { markers, .. } | CallSyntax::Json { markers, .. }) = syntax;
    let [open, close] = markers.map(marker);
    let mut rules = String::new();
    let mut names = Vec::new();
    for (index, tool) in tools.iter().enumerate() {
        let refused = |why: String| GuidanceError::Tool { tool: tool.name().to_owned(), why };
        checked_name(tool).map_err(refused)?;
        let rule = format!("call{index}");
        let body = match syntax {
            CallSyntax::Pairs { quote, .. } => {
                let mut arguments = Arguments::new(tool, &rule, (quote, marker(quote)), markers[1]);
                let object = arguments.object().map_err(refused)?;
                rules += &arguments.rules();
                let name = literal::string(&format!("call:{}", tool.name()));
                format!("{name} {object}")
            }
            CallSyntax::Json { arguments, markers } => {
                let line = if markers[0].is_empty() { "" } else { "\n" };
                let name = Value::from(tool.name());
                let before = format!("{line}{{\"name\": {name}, \"{arguments}\": ");
                let schema = parameters(tool).map_err(refused)?;
                let after = format!("}}{line}");
                format!("{} %json {schema} {}", literal::string(&before), literal::string(&after))
            }
        };
        rules += &format!("{rule}: {body}\n");
        names.push(rule);
    }
    Ok(format!("call: {open} ({}) {close}\n{rules}", names.join(" | ")))
}

/// A marker: a control token, or its text if the vocabulary has none.
fn marker(name: &str, has_marker: &dyn Fn(&str) -> bool) -> String {
    if has_marker(name) { name.to_owned() } else { literal::string(name) }
}

/// Names end at the arguments, and are written without quotes.
fn checked_name(tool: &Tool) -> Result<(), String> {
    let name = tool.name();
    let good = |c: char| c.is_alphanumeric() || "_-.:/".contains(c);
    if name.is_empty() || !name.chars().all(good) {
        return Err("its name must have letters, digits, _, -, ., : and / only".into());
    }
    Ok(())
}

/// The schema of the arguments as JSON.
fn parameters(tool: &Tool) -> Result<Value, String> {
    let mut schema = match tool.function.get("parameters") {
        None | Some(Value::Null) => {
            json!({ "type": "object", "properties": {}, "additionalProperties": false })
        }
        Some(Value::Object(schema)) => Value::Object(schema.clone()),
        Some(_) => return Err("its parameters are no JSON schema".into()),
    };
    // Arguments are an object, whatever else the schema allows.
    if schema.get("type").is_none() {
        schema["type"] = "object".into();
    }
    // Models invent parameters where they may.
    if COMBINED.iter().all(|key| schema.get(key).is_none())
        && schema.get("additionalProperties").is_none()
    {
        schema["additionalProperties"] = false.into();
    }
    let mut schema = crate::schema::prepared(&schema).map_err(|error| error.to_string())?;
    // Qwen and Llama separate by a blank.
    schema["x-guidance"] = json!({ "whitespace_pattern": r" |\n {0,16}" });
    Ok(schema)
}
