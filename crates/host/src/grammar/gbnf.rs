//! llama.cpp's GBNF, converted to llguidance's Lark notation.
//!
//! Rules that are not recursive become terminals, which are regular expressions and need no lexer; the others become rules.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
    iter::Peekable,
    str::Chars,
};

use super::lark::{escaped, literal};

/// Groups within groups, and repetitions of repetitions.
const DEEPEST: usize = 64;

/// Rules may name each other in a chain of this length.
const MAX_RULES: usize = 1024;

/// As in llama.cpp: more repetitions make grammars too large.
const MAX_REPEATS: u32 = 2000;

/// Why a grammar cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum GbnfError {
    #[error("line {line}: expected {expected}")]
    Syntax { line: usize, expected: &'static str },
    #[error("there is no rule `{name}`")]
    NoRule { name: String },
}

/// Alternatives of sequences.
type Alternatives = Vec<Vec<Item>>;

#[derive(Debug)]
enum Item {
    Text(String),
    /// A regular expression of one character.
    Class(String),
    Rule(String),
    Group(Alternatives),
    Repeat(Box<Self>, u32, Option<u32>),
}

/// Converts a grammar with the rule `root`.
pub(super) fn to_lark(gbnf: &str) -> Result<String, GbnfError> {
    let mut parser = Parser { rest: gbnf.chars().peekable(), line: 1, depth: 0 };
    let mut rules: Vec<(String, Alternatives)> = Vec::new();
    parser.space(true);
    while parser.rest.peek().is_some() {
        if rules.len() == MAX_RULES {
            return Err(parser.wrong("at most 1024 rules"));
        }
        rules.push(parser.rule()?);
        parser.space(true);
    }
    let numbers: HashMap<&str, usize> =
        rules.iter().enumerate().map(|(number, (name, _))| (name.as_str(), number)).collect();
    let mut uses = Vec::with_capacity(rules.len());
    for (_, alternatives) in &rules {
        let mut used = HashSet::new();
        used_by(alternatives, &numbers, &mut used)?;
        uses.push(used);
    }
    let is_terminal = terminals(&uses);
    let name = |number: usize| {
        if is_terminal[number] { format!("T{number}") } else { format!("r{number}") }
    };
    let root = *numbers.get("root").ok_or(GbnfError::NoRule { name: "root".to_owned() })?;
    let mut lark = format!("start: {}\n", name(root));
    for (number, (_, alternatives)) in rules.iter().enumerate() {
        let written = write(alternatives, &|rule| numbers.get(rule).map(|number| name(*number)));
        let _ = writeln!(lark, "{}: {written}", name(number));
    }
    Ok(lark)
}

/// The rules that alternatives name.
fn used_by(
    alternatives: &Alternatives,
    numbers: &HashMap<&str, usize>,
    used: &mut HashSet<usize>,
) -> Result<(), GbnfError> {
    for item in alternatives.iter().flatten() {
        let mut item = item;
        while let Item::Repeat(inner, ..) = item {
            item = inner;
        }
        match item {
            Item::Rule(name) => {
                let number = numbers.get(name.as_str());
                used.insert(*number.ok_or_else(|| GbnfError::NoRule { name: name.clone() })?);
            }
            Item::Group(inner) => used_by(inner, numbers, used)?,
            Item::Text(_) | Item::Class(_) | Item::Repeat(..) => {}
        }
    }
    Ok(())
}

/// The rules that name terminals only, directly or not: none of them is recursive.
fn terminals(uses: &[HashSet<usize>]) -> Vec<bool> {
    let mut is_terminal = vec![false; uses.len()];
    loop {
        let before = is_terminal.clone();
        for (number, used) in uses.iter().enumerate() {
            is_terminal[number] = used.iter().all(|other| before[*other]);
        }
        if is_terminal == before {
            return is_terminal;
        }
    }
}

fn write(alternatives: &Alternatives, name: &dyn Fn(&str) -> Option<String>) -> String {
    let sequence = |items: &Vec<Item>| {
        let items: Vec<String> = items.iter().map(|item| write_item(item, name)).collect();
        if items.is_empty() { literal("") } else { items.join(" ") }
    };
    alternatives.iter().map(sequence).collect::<Vec<_>>().join(" | ")
}

fn write_item(item: &Item, name: &dyn Fn(&str) -> Option<String>) -> String {
    match item {
        Item::Text(text) => literal(text),
        Item::Class(class) => format!("/{class}/"),
        Item::Rule(rule) => name(rule).unwrap_or_default(),
        Item::Group(inner) => format!("({})", write(inner, name)),
        Item::Repeat(_, _, Some(0)) => literal(""),
        Item::Repeat(inner, least, most) => {
            let inner = write_item(inner, name);
            match (least, most) {
                (0, None) => format!("({inner})*"),
                (1, None) => format!("({inner})+"),
                (0, Some(1)) => format!("({inner})?"),
                (least, None) => format!("({inner}){{{least},}}"),
                (least, Some(most)) => format!("({inner}){{{least},{most}}}"),
            }
        }
    }
}

struct Parser<'a> {
    rest: Peekable<Chars<'a>>,
    line: usize,
    depth: usize,
}

impl Parser<'_> {
    /// `name ::= alternatives`
    fn rule(&mut self) -> Result<(String, Alternatives), GbnfError> {
        let name = self.name();
        if name.is_empty() {
            return Err(self.wrong("the name of a rule"));
        }
        self.space(false);
        for c in "::=".chars() {
            self.expect(c, "`::=`")?;
        }
        self.space(true);
        let alternatives = self.alternatives()?;
        match self.rest.peek() {
            None | Some('\n') => Ok((name, alternatives)),
            Some(_) => Err(self.wrong("the end of the rule")),
        }
    }

    fn alternatives(&mut self) -> Result<Alternatives, GbnfError> {
        let mut all = vec![self.sequence()?];
        while self.eat('|') {
            self.space(true);
            all.push(self.sequence()?);
        }
        Ok(all)
    }

    fn sequence(&mut self) -> Result<Vec<Item>, GbnfError> {
        let mut items = Vec::new();
        while let Some(&c) = self.rest.peek() {
            let item = match c {
                '"' => self.text()?,
                '[' => self.class()?,
                '.' => {
                    self.next();
                    Item::Class("(?s:.)".to_owned())
                }
                '(' => self.group()?,
                c if is_name(c) => Item::Rule(self.name()),
                _ => break,
            };
            items.push(self.repeated(item)?);
            self.space(self.depth > 0);
        }
        Ok(items)
    }

    fn group(&mut self) -> Result<Item, GbnfError> {
        if self.depth == DEEPEST {
            return Err(self.wrong("at most 64 groups within each other"));
        }
        self.next();
        self.depth += 1;
        self.space(true);
        let inner = self.alternatives()?;
        self.expect(')', "`)`")?;
        self.depth -= 1;
        Ok(Item::Group(inner))
    }

    fn repeated(&mut self, mut item: Item) -> Result<Item, GbnfError> {
        for _ in 0..DEEPEST {
            self.space(self.depth > 0);
            let (least, most) = match self.rest.peek() {
                Some('*') => (0, None),
                Some('+') => (1, None),
                Some('?') => (0, Some(1)),
                Some('{') => {
                    item = self.counted(item)?;
                    continue;
                }
                _ => return Ok(item),
            };
            self.next();
            item = Item::Repeat(Box::new(item), least, most);
        }
        Err(self.wrong("at most 64 repetitions of repetitions"))
    }

    /// `{2}`, `{2,}`, `{,3}` or `{2,3}`
    fn counted(&mut self, item: Item) -> Result<Item, GbnfError> {
        self.next();
        let least = self.count()?;
        self.space(false);
        let most = if self.eat(',') {
            self.space(false);
            self.count()?
        } else {
            Some(least.ok_or_else(|| self.wrong("a number"))?)
        };
        self.space(false);
        self.expect('}', "`}`")?;
        let least = least.unwrap_or(0);
        if most.is_some_and(|most| most < least) {
            return Err(self.wrong("repetitions from the smaller to the larger number"));
        }
        Ok(Item::Repeat(Box::new(item), least, most))
    }

    fn count(&mut self) -> Result<Option<u32>, GbnfError> {
        let mut count = None;
        while let Some(digit) = self.rest.peek().and_then(|c| c.to_digit(10)) {
            let next = count.unwrap_or(0) * 10 + digit;
            if next > MAX_REPEATS {
                return Err(self.wrong("at most 2000 repetitions"));
            }
            count = Some(next);
            self.next();
        }
        Ok(count)
    }

    fn text(&mut self) -> Result<Item, GbnfError> {
        self.next();
        let mut text = String::new();
        loop {
            match self.rest.peek() {
                None | Some('\n') => return Err(self.wrong("a closing quote")),
                Some('"') => break,
                Some(_) => text.push(self.character()?),
            }
        }
        self.next();
        Ok(Item::Text(text))
    }

    /// `[a-z]` or `[^a-z]`
    fn class(&mut self) -> Result<Item, GbnfError> {
        self.next();
        let mut class = String::from(if self.eat('^') { "[^" } else { "[" });
        let before = class.len();
        loop {
            match self.rest.peek() {
                None | Some('\n') => return Err(self.wrong("`]`")),
                Some(']') => break,
                Some(_) => {}
            }
            let first = self.character()?;
            class.push_str(&escaped(first));
            if self.eat('-') {
                if self.rest.peek() == Some(&']') {
                    class.push_str(&escaped('-'));
                    break;
                }
                let last = self.character()?;
                if last < first {
                    return Err(self.wrong("a range from the smaller to the larger character"));
                }
                class.push('-');
                class.push_str(&escaped(last));
            }
        }
        self.next();
        if class.len() == before {
            return Err(self.wrong("a character in the class"));
        }
        class.push(']');
        Ok(Item::Class(class))
    }

    /// A character of a text or class, escapes decoded.
    fn character(&mut self) -> Result<char, GbnfError> {
        let wrong = self.wrong("a character");
        match self.next().ok_or(wrong)? {
            '\\' => self.escape(),
            c => Ok(c),
        }
    }

    fn escape(&mut self) -> Result<char, GbnfError> {
        let wrong = self.wrong("an escape such as \\n, \\\" or \\x41");
        let digits = match self.next() {
            Some('t') => return Ok('\t'),
            Some('r') => return Ok('\r'),
            Some('n') => return Ok('\n'),
            Some(c @ ('\\' | '"' | '[' | ']' | '-' | '^')) => return Ok(c),
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            _ => return Err(wrong),
        };
        let mut code = 0u32;
        for _ in 0..digits {
            let digit = self.next().and_then(|c| c.to_digit(16));
            let Some(digit) = digit else { return Err(wrong) };
            code = code << 4 | digit;
        }
        char::from_u32(code).ok_or(wrong)
    }

    fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(c) = self.rest.next_if(|c| is_name(*c)) {
            name.push(c);
        }
        name
    }

    /// Skips blanks and comments, and line breaks where a rule may go on in the next line.
    fn space(&mut self, lines: bool) {
        while let Some(&c) = self.rest.peek() {
            match c {
                ' ' | '\t' | '\r' => {}
                '\n' if lines => {}
                '#' => {
                    while self.rest.next_if(|c| *c != '\n').is_some() {}
                    continue;
                }
                _ => return,
            }
            self.next();
        }
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest.next();
        self.line += usize::from(next == Some('\n'));
        next
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.rest.peek() == Some(&c);
        if found {
            self.next();
        }
        found
    }

    fn expect(&mut self, c: char, expected: &'static str) -> Result<(), GbnfError> {
        if self.eat(c) { Ok(()) } else { Err(self.wrong(expected)) }
    }

    fn wrong(&self, expected: &'static str) -> GbnfError {
        GbnfError::Syntax { line: self.line, expected }
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_recursive_rules_are_rules() {
        let lark = to_lark("root ::= list\nlist ::= \"[\" list* \"]\" | word\nword ::= [a-b]+\n");
        let expected =
            "start: r0\nr0: r1\nr1: \"[\" (r1)* \"]\" | T2\nT2: (/[\\x{61}-\\x{62}]/)+\n";
        assert_eq!(lark.unwrap(), expected);
    }

    #[test]
    fn errors_name_the_line() {
        let error = to_lark("root ::= \"a\"\nb ::= \"x\n").unwrap_err();
        assert_eq!(error, GbnfError::Syntax { line: 2, expected: "a closing quote" });
    }
}
