//! Tool declarations and `tool_choice`.

use rullama_chat::Tool;
use serde_json::Value;

use crate::fields::{Field, Fields};
use crate::{ApiError, ToolChoice};

/// More than any client declares; lists are searched linearly.
const MAX_TOOLS: usize = 1024;

/// Refuses excessively long lists.
pub(super) fn check_count(tools: &[Tool]) -> Result<(), ApiError> {
    match tools.len() {
        0..=MAX_TOOLS => Ok(()),
        _ => Err(ApiError::field("tools", "a list of at most 1024 tools")),
    }
}

/// OpenAI's and Ollama's `[{"type": "function", "function": {…}}]`. Schemas are not changed.
pub(super) fn nested(list: Vec<Field>) -> Result<Vec<Tool>, ApiError> {
    list.into_iter()
        .map(|field| {
            let mut tool = field.object()?;
            function_type(&mut tool)?;
            declared(tool.need("function")?)
        })
        .collect()
}

/// A function object with a name.
pub(super) fn declared(field: Field) -> Result<Tool, ApiError> {
    let path = field.path.clone();
    let Value::Object(function) = field.value else {
        return Err(ApiError::field(path, "an object"));
    };
    let tool = Tool { function };
    if tool.name().is_empty() {
        return Err(ApiError::Missing { field: format!("{path}.name") });
    }
    Ok(tool)
}

fn function_type(tool: &mut Fields) -> Result<(), ApiError> {
    match tool.take("type") {
        None => Ok(()),
        Some(field) if field.value == "function" => Ok(()),
        Some(field) => Err(ApiError::unsupported(field.path, "declare tools of type \"function\"")),
    }
}

/// `tool_choice` of Chat Completions and Responses, which differ in the position of the name.
pub(super) fn choice(field: Option<Field>, tools: &[Tool]) -> Result<ToolChoice, ApiError> {
    check_count(tools)?;
    let Some(field) = field else { return Ok(ToolChoice::Auto) };
    const EXPECTED: &str = "\"auto\", \"none\", \"required\", a function or \"allowed_tools\"";
    if let Value::String(mode) = &field.value {
        return match mode.as_str() {
            "auto" => Ok(ToolChoice::Auto),
            "none" => Ok(ToolChoice::None),
            "required" | "any" => required(tools, &field),
            _ => Err(field.wrong(EXPECTED)),
        };
    }
    let path = field.path.clone();
    let mut object = field.object()?;
    match object.string("type")?.as_deref() {
        Some("function") => {
            let name = named(&mut object)?.ok_or_else(|| missing_name(&path))?;
            Ok(ToolChoice::Named(known(name, tools, &path)?))
        }
        Some("allowed_tools") => {
            let mut allowed = match object.object("allowed_tools")? {
                Some(inner) => inner,
                None => object,
            };
            allowed_tools(&mut allowed, tools)
        }
        _ => Err(ApiError::field(path, EXPECTED)),
    }
}

/// At least one call, which requires declared tools.
pub(super) fn required(tools: &[Tool], field: &Field) -> Result<ToolChoice, ApiError> {
    if tools.is_empty() {
        return Err(field.wrong("used together with `tools`"));
    }
    Ok(ToolChoice::Required)
}

/// The name, if it is declared.
pub(super) fn known(name: String, tools: &[Tool], path: &str) -> Result<String, ApiError> {
    if tools.iter().any(|tool| tool.name() == name) {
        Ok(name)
    } else {
        Err(ApiError::UnknownTool { field: path.to_owned(), name })
    }
}

fn allowed_tools(allowed: &mut Fields, tools: &[Tool]) -> Result<ToolChoice, ApiError> {
    let required = match allowed.take("mode") {
        None => false,
        Some(field) => match field.value.as_str() {
            Some("auto") => false,
            Some("required") => true,
            _ => return Err(field.wrong("\"auto\" or \"required\"")),
        },
    };
    let mut names = Vec::new();
    for field in allowed.need("tools")?.list()? {
        let path = field.path.clone();
        let name = named(&mut field.object()?)?.ok_or_else(|| missing_name(&path))?;
        names.push(known(name, tools, &path)?);
    }
    if names.is_empty() {
        return Err(ApiError::field(allowed.path("tools"), "a list of at least one tool"));
    }
    Ok(ToolChoice::Allowed { names, required })
}

/// `{"function": {"name"}}` or `{"name"}`.
fn named(object: &mut Fields) -> Result<Option<String>, ApiError> {
    match object.object("function")? {
        Some(mut function) => function.string("name"),
        None => object.string("name"),
    }
}

fn missing_name(path: &str) -> ApiError {
    ApiError::Missing { field: format!("{path}.name") }
}
