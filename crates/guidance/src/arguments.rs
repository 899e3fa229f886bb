//! Arguments in Gemma's notation of calls: bare keys, sorted without regard to case, and strings between markers. A tool's schema
//! becomes Lark rules, since llguidance knows schemas of JSON only.

use std::{collections::HashMap, fmt::Write as _};

use rullama_chat::Tool;
use serde_json::{Map, Value, json};

use crate::{
    literal,
    regex::{ANY, Extent, translated},
};

/// The maximum nesting of a schema; the parser of calls has the same limit.
const DEPTH_LIMIT: usize = 64;

/// Keywords that restrict values and cannot be enforced here.
const UNSUPPORTED: [&str; 25] = [
    "not",
    "if",
    "then",
    "else",
    "dependencies",
    "dependentSchemas",
    "dependentRequired",
    "contains",
    "minContains",
    "maxContains",
    "uniqueItems",
    "prefixItems",
    "additionalItems",
    "propertyNames",
    "patternProperties",
    "minProperties",
    "maxProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "$dynamicRef",
    "$recursiveRef",
    "discriminator",
];

/// Keywords that say how large a number may be.
const BOUNDS: [&str; 5] =
    ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];

/// Keywords that say which type a schema without one is about.
const TYPES: [(&str, &[&str]); 4] = [
    ("object", &["properties", "required", "additionalProperties"]),
    ("array", &["items", "minItems", "maxItems"]),
    ("string", &["minLength", "maxLength", "pattern", "format"]),
    ("number", &BOUNDS),
];

/// Writes the rules of one tool's arguments.
pub(crate) struct Arguments<'a> {
    root: Value,
    /// What names of rules begin with.
    prefix: &'a str,
    /// The marker on both sides of a string, and in Lark.
    quote: (&'static str, String),
    /// What ends a call, which strings must not contain.
    close: &'static str,
    rules: String,
    count: usize,
    /// Rules of `$ref`s.
    refs: HashMap<String, String>,
    has_any: bool,
    depth: usize,
}

type Outcome = Result<String, String>;

impl<'a> Arguments<'a> {
    pub(crate) fn new(
        tool: &Tool,
        prefix: &'a str,
        quote: (&'static str, String),
        close: &'static str,
    ) -> Self {
        let closed =
            || json!({ "type": "object", "properties": {}, "additionalProperties": false });
        let given = tool.function.get("parameters").filter(|given| !given.is_null());
        let root = given.cloned().unwrap_or_else(closed);
        Self {
            root,
            prefix,
            quote,
            close,
            rules: String::new(),
            count: 0,
            refs: HashMap::new(),
            has_any: false,
            depth: 0,
        }
    }

    /// The rules that were needed.
    pub(crate) fn rules(self) -> String {
        self.rules
    }

    /// The arguments, in braces, as the name of a rule.
    pub(crate) fn object(&mut self) -> Outcome {
        let root = self.root.clone();
        let Value::Object(keywords) = &root else {
            return Err("its parameters are no JSON schema".into());
        };
        match keywords.get("type").map(lower) {
            None if keywords.contains_key("$ref") => self.value(&root),
            None => self.typed("object", keywords),
            Some(kind) if kind == "object" => self.value(&root),
            Some(kind) => Err(format!("its parameters must be an object, not {kind}")),
        }
    }

    /// A value of a schema, as the name of a rule.
    fn value(&mut self, schema: &Value) -> Outcome {
        if self.depth == DEPTH_LIMIT {
            return Err("its parameters are nested too deeply".into());
        }
        self.depth += 1;
        let outcome = match schema {
            Value::Bool(true) => self.any(),
            Value::Object(keywords) => self.schema(keywords),
            _ => Err("a schema that allows nothing, or is none".into()),
        };
        self.depth -= 1;
        outcome
    }

    fn schema(&mut self, keywords: &Map<String, Value>) -> Outcome {
        if let Some(keyword) = UNSUPPORTED.iter().find(|keyword| keywords.contains_key(**keyword)) {
            return Err(format!("{keyword} is not supported"));
        }
        if keywords.get("nullable") == Some(&Value::Bool(true)) {
            let mut rest = keywords.clone();
            rest.remove("nullable");
            let value = self.schema(&rest)?;
            return Ok(self.rule(&format!("{value} | \"null\"")));
        }
        for (keyword, others) in [
            ("$ref", &[][..]),
            ("const", &["type"]),
            ("enum", &["type"]),
            ("anyOf", &["type"]),
            ("oneOf", &["type"]),
            ("allOf", &["type"]),
        ] {
            let Some(value) = keywords.get(keyword) else { continue };
            only(keywords, keyword, others)?;
            return match (keyword, value) {
                ("$ref", Value::String(pointer)) => self.reference(pointer),
                ("const", value) => self.literals(keywords, std::slice::from_ref(value)),
                ("enum", Value::Array(values)) => self.literals(keywords, values),
                ("anyOf", Value::Array(schemas)) => self.one_of(schemas),
                ("oneOf", Value::Array(schemas)) if are_disjoint(schemas) => self.one_of(schemas),
                ("oneOf", Value::Array(_)) => {
                    Err("alternatives of oneOf may overlap: use anyOf".into())
                }
                ("allOf", Value::Array(schemas)) if schemas.len() == 1 => self.value(&schemas[0]),
                ("allOf", Value::Array(_)) => Err("allOf is not supported: merge it".into()),
                _ => Err(format!("the value of {keyword} is invalid")),
            };
        }
        match keywords.get("type") {
            Some(Value::Array(types)) => {
                let each = types.iter().map(|kind| self.typed(&lower(kind), keywords));
                let each = each.collect::<Result<Vec<_>, _>>()?;
                Ok(self.rule(&each.join(" | ")))
            }
            Some(kind) => self.typed(&lower(kind), keywords),
            None => {
                let about = |words: &&[&str]| words.iter().any(|word| keywords.contains_key(*word));
                match TYPES.iter().find(|(_, words)| about(words)) {
                    Some((kind, _)) => self.typed(kind, keywords),
                    None => self.any(),
                }
            }
        }
    }

    fn typed(&mut self, kind: &str, keywords: &Map<String, Value>) -> Outcome {
        match kind {
            "object" => self.pairs(keywords),
            "array" => self.list(keywords),
            "string" => self.string(keywords),
            "number" | "integer" | "boolean" | "null" => {
                let mut schema = Map::new();
                schema.insert("type".into(), kind.into());
                let bounds = keywords.iter().filter(|(word, _)| BOUNDS.contains(&word.as_str()));
                schema.extend(bounds.map(|(word, value)| (word.clone(), value.clone())));
                schema.insert("x-guidance".into(), json!({ "whitespace_flexible": false }));
                Ok(self.rule(&format!("%json {}", Value::Object(schema))))
            }
            other => Err(format!("there is no type {other:?}")),
        }
    }

    /// Any value, nested or not.
    fn any(&mut self) -> Outcome {
        let name = format!("{}_any", self.prefix);
        if !std::mem::replace(&mut self.has_any, true) {
            let string = self.string(&Map::new())?;
            let scalar = "%json {\"type\": [\"number\", \"boolean\", \"null\"], \"x-guidance\": {\"whitespace_flexible\": false}}";
            let key = key_terminal();
            let _ = writeln!(
                self.rules,
                "{name}: {string} | {scalar} | \"[\" ({name} (\",\" {name})*)? \"]\" | \"{{\" ({key} \":\" {name} (\",\" {key} \":\" {name})*)? \"}}\""
            );
        }
        Ok(name)
    }

    fn reference(&mut self, reference: &str) -> Outcome {
        if let Some(rule) = self.refs.get(reference) {
            return Ok(rule.clone());
        }
        let pointer = reference.strip_prefix('#');
        let target = pointer.and_then(|pointer| self.root.pointer(pointer)).cloned();
        let target = target.ok_or(format!("{reference} refers to nothing in its parameters"))?;
        // Known before it is written: schemas may refer to themselves.
        let rule = self.name();
        self.refs.insert(reference.to_owned(), rule.clone());
        let value = self.value(&target)?;
        if value == rule {
            return Err(format!("{reference} refers to itself"));
        }
        let _ = writeln!(self.rules, "{rule}: {value}");
        Ok(rule)
    }

    fn one_of(&mut self, schemas: &[Value]) -> Outcome {
        if schemas.is_empty() {
            return Err("a list of no alternatives".into());
        }
        let each = schemas.iter().map(|schema| self.value(schema));
        let each = each.collect::<Result<Vec<_>, _>>()?;
        Ok(self.rule(&each.join(" | ")))
    }

    /// The values of an enumeration that have its type.
    fn literals(&mut self, keywords: &Map<String, Value>, values: &[Value]) -> Outcome {
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

    fn literal(&mut self, value: &Value) -> Outcome {
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

    fn list(&mut self, keywords: &Map<String, Value>) -> Outcome {
        let item = match keywords.get("items") {
            None => self.any()?,
            Some(Value::Array(_)) => return Err("a list of items is not supported".into()),
            Some(items) => self.value(items)?,
        };
        let least = count(keywords, "minItems")?.unwrap_or(0);
        let most = count(keywords, "maxItems")?;
        if most.is_some_and(|most| most < least) {
            return Err("maxItems is less than minItems".into());
        }
        let more = match most {
            Some(0) => return Ok(self.rule("\"[\" \"]\"")),
            Some(most) => format!("{{{},{}}}", least.saturating_sub(1), most - 1),
            None => format!("{{{},}}", least.saturating_sub(1)),
        };
        let items = format!("{item} (\",\" {item}){more}");
        let items = if least == 0 { format!("({items})?") } else { items };
        Ok(self.rule(&format!("\"[\" {items} \"]\"")))
    }

    /// An object. Properties that the schema does not name are written only where it names none: fewer are always valid.
    fn pairs(&mut self, keywords: &Map<String, Value>) -> Outcome {
        let empty = Map::new();
        let properties = match keywords.get("properties") {
            None => &empty,
            Some(Value::Object(properties)) => properties,
            Some(_) => return Err("properties must be an object".into()),
        };
        let others = keywords.get("additionalProperties").unwrap_or(&Value::Bool(true));
        let required = match keywords.get("required") {
            None => Vec::new(),
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            Some(_) => return Err("required must be a list".into()),
        };
        let mut all = properties.clone();
        for name in &required {
            all.entry(*name).or_insert_with(|| others.clone());
        }
        if all.is_empty() {
            if others == &Value::Bool(false) || keywords.contains_key("properties") {
                return Ok(self.rule("\"{\" \"}\""));
            }
            let (key, value) = (key_terminal(), self.value(others)?);
            return Ok(self.rule(&format!(
                "\"{{\" ({key} \":\" {value} (\",\" {key} \":\" {value})*)? \"}}\""
            )));
        }
        let mut pairs = Vec::new();
        for (key, schema) in sorted(&all) {
            let is_required = required.contains(&key.as_str());
            match self.value(schema) {
                Ok(value) => {
                    let key = literal::string(&format!("{}:", bare(key)?));
                    pairs.push((format!("{key} {value}"), is_required));
                }
                // What cannot be written may be left out.
                Err(_) if !is_required && schema == &Value::Bool(false) => {}
                Err(why) => return Err(format!("{why} (in {key:?})")),
            }
        }
        let pairs = self.in_order(&pairs);
        Ok(self.rule(&format!("\"{{\" {pairs} \"}}\"")))
    }

    /// Pairs in order, of which some may be missing: commas stand between those that are there.
    fn in_order(&mut self, pairs: &[(String, bool)]) -> String {
        let mut rest = String::new();
        // Alternatives by the pair that comes first, last first.
        let mut firsts: Vec<String> = Vec::new();
        let mut may_be_empty = true;
        for (pair, is_required) in pairs.iter().rev() {
            if *is_required {
                firsts.clear();
                may_be_empty = false;
            }
            firsts.push(format!("{pair} {rest}"));
            let optional = if *is_required { "" } else { "?" };
            rest = self.rule(&format!("(\",\" {pair}){optional} {rest}"));
        }
        firsts.reverse();
        let firsts = self.rule(&firsts.join(" | "));
        if may_be_empty { format!("{firsts}?") } else { firsts }
    }

    fn string(&mut self, keywords: &Map<String, Value>) -> Outcome {
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
            parts.push(
                translated(pattern, "u", Extent::Part).map_err(|error| error.to_string())?,
            );
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
    fn quoted(&mut self, content: &str) -> String {
        let terminal = self.terminal(std::slice::from_ref(&content.to_owned()));
        self.between_quotes(&terminal)
    }

    fn intersected(&mut self, parts: &[String]) -> String {
        let terminal = self.terminal(parts);
        let expression = self.between_quotes(&terminal);
        self.rule(&expression)
    }

    fn between_quotes(&self, terminal: &str) -> String {
        let quote = &self.quote.1;
        if self.quote_is_text() { terminal.into() } else { format!("{quote} {terminal} {quote}") }
    }

    /// Whether the vocabulary has no token for the quote.
    fn quote_is_text(&self) -> bool {
        self.quote.1.starts_with('"')
    }

    /// A terminal for the content of strings. Quotes that are text are part of it: the lexer takes the longest match, and would take
    /// most of a quote after the content for content.
    fn terminal(&mut self, parts: &[String]) -> String {
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

    /// A rule with this right side.
    fn rule(&mut self, expression: &str) -> String {
        let name = self.name();
        let _ = writeln!(self.rules, "{name}: {expression}");
        name
    }

    fn name(&mut self) -> String {
        self.count += 1;
        format!("{}_{}", self.prefix, self.count)
    }
}

/// Keys of objects whose properties are not declared.
fn key_terminal() -> &'static str {
    "/[A-Za-z_][A-Za-z0-9_-]{0,63}/"
}

/// A key that can be written without quotes.
fn bare(key: &str) -> Result<&str, String> {
    let good = |c: char| c.is_alphanumeric() || "_-. $@/".contains(c);
    if key.is_empty() || key.trim() != key || !key.chars().all(good) {
        return Err(format!("the parameter {key:?} cannot be written in a call of this model"));
    }
    Ok(key)
}

/// The entries as templates write them.
fn sorted(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut pairs: Vec<_> = map.iter().collect();
    pairs.sort_by_cached_key(|(key, _)| key.to_lowercase());
    pairs
}

/// Refuses keywords that restrict values, except for these.
fn only(keywords: &Map<String, Value>, keyword: &str, others: &[&str]) -> Result<(), String> {
    let restricts = TYPES.iter().flat_map(|(_, words)| words.iter());
    let combined = ["type", "const", "enum", "anyOf", "oneOf", "allOf", "$ref"];
    let mut all = restricts.chain(&combined).filter(|word| {
        **word != keyword && !others.contains(*word) && keywords.contains_key(**word)
    });
    match all.next() {
        Some(word) => Err(format!("{keyword} together with {word} is not supported")),
        None => Ok(()),
    }
}

fn lower(kind: &Value) -> String {
    kind.as_str().unwrap_or_default().to_lowercase()
}

fn count(keywords: &Map<String, Value>, keyword: &str) -> Result<Option<usize>, String> {
    let Some(value) = keywords.get(keyword) else { return Ok(None) };
    let count = value.as_u64().and_then(|count| usize::try_from(count).ok());
    count.map(Some).ok_or(format!("{keyword} must be a whole number"))
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn has_type(value: &Value, kinds: &[String]) -> bool {
    let whole = value.as_f64().is_some_and(|number| number.fract() == 0.0);
    kinds.iter().any(|kind| kind == type_of(value) || (kind == "integer" && whole))
}

/// Whether no value matches two of these schemas: each has another type.
fn are_disjoint(schemas: &[Value]) -> bool {
    let kinds: Option<Vec<String>> = schemas
        .iter()
        .map(|schema| match (schema.get("type"), schema.get("const")) {
            (_, Some(value)) => Some(format!("={value}")),
            (Some(Value::String(kind)), None) => Some(kind.to_lowercase().replace("integer", "number")),
            _ => None,
        })
        .collect();
    kinds.is_some_and(|kinds| {
        let typed = kinds.iter().filter(|kind| !kind.starts_with('=')).count();
        let unique = kinds.iter().enumerate().all(|(at, kind)| !kinds[..at].contains(kind));
        unique && (typed == 0 || typed == kinds.len())
    })
}

/// The pattern of a format.
fn format_pattern(format: &str) -> Option<&'static str> {
    Some(match format {
        "date" => r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])",
        "time" => r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?([zZ]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])",
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
