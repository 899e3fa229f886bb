//! The text of a tool call: `call:NAME{key:value,…}`, parsed strictly, with repairs for common mistakes of models.
//!
//! A repair is tried only after strict parsing has failed at a position, and the text there selects it: another kind of
//! quote, an unclosed string, the end of the text, or bare text where the schema expects a string.

use serde_json::{Map, Number, Value};

use crate::ChatError;
use crate::markers::{CALL_OPEN, FUNCTION_RESPONSE_OPEN, QUOTE, RESPONSE_OPEN};
use crate::tool::{Tool, accepts_string};

/// The maximum nesting of arguments.
const DEPTH_LIMIT: usize = 64;

/// A tool call by the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The called tool, which need not be declared.
    pub name: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
}

/// Parses the text between `<|tool_call>` and `<tool_call|>`. The schemas of `tools` help to repair unquoted strings.
pub fn parse_call(text: &str, tools: &[Tool]) -> Result<Call, ChatError> {
    parse_quoted(text, tools, QUOTE, false)
}

/// As [`parse_call`], with another quote marker. `bare`: a scalar that is neither number nor literal is a string, up to the next delimiter.
pub(crate) fn parse_quoted(
    text: &str,
    tools: &[Tool],
    quote: &'static str,
    bare: bool,
) -> Result<Call, ChatError> {
    // Models sometimes write control markers around the call; they are ignored.
    let end = text.trim_end();
    let end = end.strip_suffix(RESPONSE_OPEN).or_else(|| end.strip_suffix(FUNCTION_RESPONSE_OPEN));
    let text = end.unwrap_or(text);
    let mut reader =
        Reader { text, quote, bare, at: 0, open: Vec::new(), repaired: false, properties: None };
    reader.skip_space();
    while reader.eat(CALL_OPEN) {
        reader.skip_space();
    }
    reader.expect("call:", "`call:`")?;
    let name =
        reader.rest().find('{').map(|end| reader.take(end).trim()).filter(|name| !name.is_empty());
    let name = name.ok_or(reader.wrong("a name and `{`"))?;
    reader.properties = tools.iter().find(|tool| tool.name() == name).and_then(Tool::properties);
    reader.expect("{", "`{`")?;
    let arguments = reader.object()?;
    reader.skip_space();
    if !reader.rest().is_empty() {
        return Err(reader.wrong("the end of the call"));
    }
    Ok(Call { name: name.to_owned(), arguments })
}

struct Reader<'a> {
    text: &'a str,
    /// The marker on both sides of a string.
    quote: &'static str,
    /// Whether unquoted text is a string.
    bare: bool,
    at: usize,
    /// The closing brackets still expected, innermost last.
    open: Vec<char>,
    /// Whether a repair was needed.
    repaired: bool,
    /// The declared parameters of the called tool.
    properties: Option<&'a Map<String, Value>>,
}

impl<'a> Reader<'a> {
    /// The pairs of an object, starting after its `{`.
    fn object(&mut self) -> Result<Map<String, Value>, ChatError> {
        self.enter('}')?;
        let mut map = Map::new();
        self.skip_space();
        if !self.eat("}") {
            loop {
                let key = self.key()?;
                let value = self.value(Some(&key))?;
                map.insert(key, value);
                self.skip_space();
                if self.eat("}") || self.final_brace_missing() {
                    break;
                }
                self.expect(",", "`,` or `}`")?;
            }
        }
        self.open.pop();
        Ok(map)
    }

    /// The elements of an array, starting after its `[`.
    fn array(&mut self) -> Result<Vec<Value>, ChatError> {
        self.enter(']')?;
        let mut items = Vec::new();
        self.skip_space();
        if !self.eat("]") {
            loop {
                items.push(self.value(None)?);
                self.skip_space();
                if self.eat("]") {
                    break;
                }
                self.expect(",", "`,` or `]`")?;
            }
        }
        self.open.pop();
        Ok(items)
    }

    fn enter(&mut self, closer: char) -> Result<(), ChatError> {
        if self.open.len() == DEPTH_LIMIT {
            return Err(ChatError::CallTooDeep { limit: DEPTH_LIMIT });
        }
        self.open.push(closer);
        Ok(())
    }

    /// A key and the colon after it.
    fn key(&mut self) -> Result<String, ChatError> {
        self.skip_space();
        let key = if self.eat(self.quote) {
            let end = self.rest().find(self.quote).ok_or(self.wrong("a closing quote"))?;
            let key = self.take(end).to_owned();
            self.at += self.quote.len();
            key
        } else if self.rest().starts_with('"') {
            self.json_string()?
        } else {
            let end = self.rest().find([':', '}']).ok_or(self.wrong("`:`"))?;
            let key = self.rest()[..end].trim_end();
            if key.is_empty() {
                return Err(self.wrong("a key"));
            }
            self.at += end;
            key.to_owned()
        };
        self.skip_space();
        self.expect(":", "`:`")?;
        Ok(key)
    }

    /// A value; `key` is its key inside an object.
    fn value(&mut self, key: Option<&str>) -> Result<Value, ChatError> {
        let after_colon = self.at;
        self.skip_space();
        let rest = self.rest();
        if self.eat(self.quote) {
            return Ok(Value::String(self.string().to_owned()));
        }
        match rest.chars().next() {
            Some('{') => {
                self.at += 1;
                self.object().map(Value::Object)
            }
            Some('[') => {
                self.at += 1;
                self.array().map(Value::Array)
            }
            _ if self.bare => Ok(self.scalar()),
            Some('"') => self.json_string().map(Value::String),
            Some('\'') => self.single_quoted().map(Value::String),
            Some('-' | '0'..='9') => self.number(),
            _ => match self.literal() {
                Some(value) => Ok(value),
                None => self.bare_string(after_colon, key).map(Value::String),
            },
        }
    }

    /// A number, a literal or, failing these, a string, up to the next delimiter.
    fn scalar(&mut self) -> Value {
        let rest = self.rest();
        let word = self.take(rest.find([',', '}', ']']).unwrap_or(rest.len())).trim();
        match word {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" => Value::Null,
            _ => serde_json::from_str(word).map_or_else(|_| Value::from(word), Value::Number),
        }
    }

    fn number(&mut self) -> Result<Value, ChatError> {
        let rest = self.rest();
        let end = rest
            .find(|c| !matches!(c, '-' | '+' | '.' | 'e' | 'E' | '0'..='9'))
            .unwrap_or(rest.len());
        let number: Number =
            serde_json::from_str(&rest[..end]).map_err(|_| self.wrong("a number"))?;
        self.at += end;
        Ok(Value::Number(number))
    }

    fn literal(&mut self) -> Option<Value> {
        [("true", Value::Bool(true)), ("false", Value::Bool(false)), ("null", Value::Null)]
            .into_iter()
            .find_map(|(word, value)| self.eat(word).then_some(value))
    }

    /// The content of a string after its opening quote marker. The last string may be unclosed.
    fn string(&mut self) -> &'a str {
        if let Some(end) = self.rest().find(self.quote) {
            let inside = self.take(end);
            self.at += self.quote.len();
            return inside;
        }
        self.repaired = true;
        self.take(self.end_of_unclosed())
    }

    /// A string in double quotes, escapes decoded. The last string may be unclosed.
    fn json_string(&mut self) -> Result<String, ChatError> {
        let wrong = self.wrong("a string with valid escapes");
        self.at += 1;
        self.repaired = true;
        let (inside, closed) = match unescaped(self.rest(), '"') {
            Some(end) => (self.take(end), 1),
            None => (self.take(self.end_of_unclosed()), 0),
        };
        self.at += closed;
        let mut json = String::with_capacity(inside.len() + 2);
        json.push('"');
        for c in inside.chars() {
            match c {
                // Models write line breaks unescaped, which JSON does not allow.
                '\0'..='\u{1f}' => json.push_str(&format!("\\u{:04x}", u32::from(c))),
                c => json.push(c),
            }
        }
        json.push('"');
        serde_json::from_str(&json).map_err(|_| wrong)
    }

    /// A string in single quotes, taken verbatim. A quote marker right after it is skipped.
    fn single_quoted(&mut self) -> Result<String, ChatError> {
        self.at += 1;
        let end = unescaped(self.rest(), '\'').ok_or(self.wrong("a closing `'`"))?;
        let inside = self.take(end).to_owned();
        self.at += 1;
        self.eat(self.quote);
        self.repaired = true;
        Ok(inside)
    }

    /// Bare text for a parameter declared as a string: up to the next declared parameter, the final `}` or the end.
    fn bare_string(&mut self, start: usize, key: Option<&str>) -> Result<String, ChatError> {
        let declared = |properties: &&Map<String, Value>| {
            key.and_then(|key| properties.get(key)).is_some_and(accepts_string)
        };
        let properties = self.properties.filter(|_| self.open.len() == 1).filter(declared);
        let properties = properties.ok_or(self.wrong("a value"))?;
        self.at = start;
        let rest = self.rest();
        let declares = |(comma, _): &(usize, &str)| {
            let after = rest[comma + 1..].trim_start();
            let mut names = properties.keys().filter(|&name| Some(name.as_str()) != key);
            names.any(|name| {
                after.strip_prefix(name.as_str()).is_some_and(|b| b.trim_start().starts_with(':'))
            })
        };
        let next = rest.match_indices(',').find(declares).map(|(comma, _)| comma);
        let to_brace = || rest.trim_end().strip_suffix('}').map(str::len);
        let end = next.or_else(to_brace).unwrap_or(rest.len());
        self.repaired = true;
        Ok(self.take(end).to_owned())
    }

    /// Where an unclosed string that runs to the end of the text should have ended: before the closing brackets.
    fn end_of_unclosed(&self) -> usize {
        let mut rest = self.rest().trim_end();
        let whole = rest.len();
        // Trailing brackets and the text before each, last first.
        let mut closers = Vec::new();
        while let Some(c @ ('}' | ']')) =
            rest.chars().next_back().filter(|_| closers.len() < self.open.len())
        {
            rest = &rest[..rest.len() - 1];
            closers.push((c, rest.len()));
            rest = rest.trim_end();
        }
        (1..=closers.len())
            .rev()
            .find(|&count| {
                let owed = self.open.iter().rev();
                closers[..count].iter().rev().zip(owed).all(|((found, _), owed)| found == owed)
            })
            .map_or(whole, |count| closers[count - 1].1)
    }

    /// Whether the call lacks only its last brace; accepted only if another repair was needed.
    fn final_brace_missing(&self) -> bool {
        self.repaired && self.open.len() == 1 && self.rest().is_empty()
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn take(&mut self, len: usize) -> &'a str {
        let taken = &self.rest()[..len];
        self.at += len;
        taken
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str, expected: &'static str) -> Result<(), ChatError> {
        if self.eat(token) { Ok(()) } else { Err(self.wrong(expected)) }
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn wrong(&self, expected: &'static str) -> ChatError {
        ChatError::CallSyntax { at: self.at, expected }
    }
}

/// The first unescaped `quote`.
fn unescaped(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let found = c == quote && !escaped;
        escaped = c == '\\' && !escaped;
        found.then_some(at)
    })
}
