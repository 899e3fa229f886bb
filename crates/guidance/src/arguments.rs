//! Arguments in Gemma's notation of calls: bare keys, sorted without regard to case, and strings between markers. A tool's schema
//! becomes Lark rules, since llguidance knows schemas of JSON only.

mod keywords;
mod strings;

use std::{collections::HashMap, fmt::Write as _};

use rullama_chat::Tool;
use serde_json::{Map, Value, json};

use self::keywords::{
    BOUNDS, KEY, TYPES, UNSUPPORTED, are_disjoint, bare, count, lower, only, sorted,
};
use crate::literal;

/// The maximum nesting of a schema; the parser of calls has the same limit.
const DEPTH_LIMIT: usize = 64;

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
            let _ = writeln!(
                self.rules,
                "{name}: {string} | {scalar} | \"[\" ({name} (\",\" {name})*)? \"]\" | \"{{\" ({KEY} \":\" {name} (\",\" {KEY} \":\" {name})*)? \"}}\""
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
            let value = self.value(others)?;
            return Ok(self.rule(&format!(
                "\"{{\" ({KEY} \":\" {value} (\",\" {KEY} \":\" {value})*)? \"}}\""
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
