//! From JavaScript's regular expressions, which JSON schemas use too, to those of llguidance, which are Rust's.
//!
//! Where both languages read the same text differently (`.`, `\d`, `\w`, `\s`, character classes), it is rewritten; what has
//! no counterpart is refused.

use crate::GuidanceError;

/// JavaScript's white space, as the inside of a class.
const SPACE: &str = r"\t\n\x0B\x0C\r \x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}";
/// What `.` matches.
const DOT: &str = r"[^\n\r\x{2028}\x{2029}]";
/// Any character.
pub(crate) const ANY: &str = "(?s:.)";

/// How much of a text a pattern must match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All of it.
    Whole,
    /// Some part of it, unless the pattern is anchored.
    Part,
}

/// A pattern for the whole text, with slashes escaped.
pub(crate) fn translated(
    pattern: &str,
    flags: &str,
    extent: Extent,
) -> Result<String, GuidanceError> {
    if let Some(flag) = flags.chars().find(|flag| !"dgimsuvy".contains(*flag)) {
        return Err(refused(format!("the flag {flag} is not known")));
    }
    let alternatives = alternatives(pattern).into_iter().map(|alternative| {
        let (inner, starts) = match alternative.strip_prefix('^') {
            Some(rest) => (rest, true),
            None => (alternative, false),
        };
        let (inner, ends) = match inner.strip_suffix('$') {
            Some(rest) if !ends_in_escape(rest) => (rest, true),
            _ => (inner, false),
        };
        let inner = Reader::new(inner, flags).translate()?;
        let any = |anchored| if anchored || extent == Extent::Whole { "" } else { "(?s:.*)" };
        Ok(format!("{}(?:{inner}){}", any(starts), any(ends)))
    });
    let all = alternatives.collect::<Result<Vec<_>, GuidanceError>>()?.join("|");
    Ok(if flags.contains('i') { format!("(?i:{all})") } else { format!("(?:{all})") })
}

fn refused(why: impl Into<String>) -> GuidanceError {
    GuidanceError::Regex { why: why.into() }
}

/// Whether a text ends in a backslash that escapes what follows.
fn ends_in_escape(text: &str) -> bool {
    text.len() % 2 != text.trim_end_matches('\\').len() % 2
}

/// The alternatives at the top level of a pattern.
fn alternatives(pattern: &str) -> Vec<&str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    let (mut depth, mut in_class, mut escaped) = (0_usize, false, false);
    for (at, c) in pattern.char_indices() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match c {
            '\\' => escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => depth += 1,
            ')' if !in_class => depth = depth.saturating_sub(1),
            '|' if !in_class && depth == 0 => {
                parts.push(&pattern[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&pattern[start..]);
    parts
}

/// What an escape stands for.
enum Escape {
    Char(char),
    /// The inside of a class, and whether it is negated.
    Class(String, bool),
}

struct Reader<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    dot: &'static str,
    /// Whether escapes follow the rules of the flags `u` and `v`.
    unicode: bool,
    /// Whether classes have operators.
    sets: bool,
    out: String,
}

impl<'a> Reader<'a> {
    fn new(pattern: &'a str, flags: &str) -> Self {
        let sets = flags.contains('v');
        Self {
            rest: pattern.chars().peekable(),
            dot: if flags.contains('s') { ANY } else { DOT },
            unicode: sets || flags.contains('u'),
            sets,
            out: String::new(),
        }
    }

    fn translate(mut self) -> Result<String, GuidanceError> {
        while let Some(c) = self.rest.next() {
            match c {
                '\\' => match self.escape(false)? {
                    Escape::Char(c) => push_char(&mut self.out, c),
                    Escape::Class(inside, negated) => {
                        self.out += &format!("[{}{inside}]", if negated { "^" } else { "" });
                    }
                },
                '.' => self.out += self.dot,
                '/' => self.out += "\\/",
                '[' => self.class()?,
                '(' => self.group()?,
                '^' | '$' => return Err(refused("^ and $ are supported at its ends only")),
                '\n' | '\r' => push_char(&mut self.out, c),
                c => self.out.push(c),
            }
        }
        Ok(self.out)
    }

    fn group(&mut self) -> Result<(), GuidanceError> {
        self.out.push('(');
        if self.rest.next_if_eq(&'?').is_none() {
            return Ok(());
        }
        match self.rest.next() {
            Some('=' | '!') => return Err(refused("lookahead has no counterpart")),
            Some('<') if matches!(self.rest.peek(), Some('=' | '!')) => {
                return Err(refused("lookbehind has no counterpart"));
            }
            // What names capture is not used.
            Some('<') => while self.rest.next().is_some_and(|c| c != '>') {},
            Some(':') => self.out += "?:",
            _ => return Err(refused("groups like (?i:…) are not supported: use flags")),
        }
        Ok(())
    }

    /// An escape after its backslash.
    fn escape(&mut self, in_class: bool) -> Result<Escape, GuidanceError> {
        let c = self.rest.next().ok_or(refused("it ends with a backslash"))?;
        let class = |inside: &str, c: char| Escape::Class(inside.into(), c.is_uppercase());
        Ok(match c {
            'd' | 'D' => class("0-9", c),
            'w' | 'W' => class("0-9A-Za-z_", c),
            's' | 'S' => class(SPACE, c),
            'p' | 'P' if self.unicode => {
                let property: String = self.property()?;
                Escape::Class(format!("\\{c}{{{property}}}"), false)
            }
            'b' if in_class => Escape::Char('\u{8}'),
            'b' | 'B' => return Err(refused("\\b and \\B have no counterpart")),
            '0' if !self.rest.peek().is_some_and(char::is_ascii_digit) => Escape::Char('\0'),
            '0'..='9' => return Err(refused("backreferences have no counterpart")),
            'k' if self.unicode || self.rest.peek() == Some(&'<') => {
                return Err(refused("backreferences have no counterpart"));
            }
            't' => Escape::Char('\t'),
            'n' => Escape::Char('\n'),
            'r' => Escape::Char('\r'),
            'v' => Escape::Char('\u{b}'),
            'f' => Escape::Char('\u{c}'),
            'c' => match self.rest.next() {
                Some(letter) if letter.is_ascii_alphabetic() => {
                    Escape::Char(char::from(letter as u8 % 32))
                }
                _ => return Err(refused("\\c needs a letter")),
            },
            'x' => Escape::Char(self.code_unit(2)?),
            'u' => Escape::Char(self.code_point()?),
            c if self.unicode && c.is_alphanumeric() => {
                return Err(refused(format!("\\{c} is not known")));
            }
            c => Escape::Char(c),
        })
    }

    /// What `\p` names.
    fn property(&mut self) -> Result<String, GuidanceError> {
        let wrong = || refused("\\p needs a property in braces");
        self.rest.next_if_eq(&'{').ok_or_else(wrong)?;
        let mut name = String::new();
        loop {
            match self.rest.next() {
                Some('}') => return Ok(name),
                Some(c) if c.is_ascii_alphanumeric() || "_=".contains(c) => name.push(c),
                _ => return Err(wrong()),
            }
        }
    }

    fn hex(&mut self, digits: usize) -> Result<u32, GuidanceError> {
        let mut value = 0;
        for _ in 0..digits {
            let digit = self.rest.next().and_then(|c| c.to_digit(16));
            value = value * 16 + digit.ok_or(refused("\\x and \\u need hexadecimal digits"))?;
        }
        Ok(value)
    }

    fn code_unit(&mut self, digits: usize) -> Result<char, GuidanceError> {
        let code = self.hex(digits)?;
        char::from_u32(code).ok_or(refused("half of a surrogate pair is no character"))
    }

    /// A character after `\u`: four digits, a surrogate pair of two escapes, or digits in braces.
    fn code_point(&mut self) -> Result<char, GuidanceError> {
        let wrong = || refused("\\u needs a character's code");
        if self.unicode && self.rest.next_if_eq(&'{').is_some() {
            let digits: String = std::iter::from_fn(|| self.rest.next_if(|c| *c != '}')).collect();
            self.rest.next();
            return u32::from_str_radix(&digits, 16)
                .ok()
                .and_then(char::from_u32)
                .ok_or_else(wrong);
        }
        let first = self.hex(4)?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first).ok_or_else(wrong);
        }
        if (self.rest.next(), self.rest.next()) != (Some('\\'), Some('u')) {
            return Err(wrong());
        }
        let second = self.hex(4)?;
        let low = second.checked_sub(0xdc00).filter(|low| *low < 0x400).ok_or_else(wrong)?;
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + low).ok_or_else(wrong)
    }

    /// A class after its bracket. Its characters are written as codes: Rust's classes have operators that JavaScript's lack.
    fn class(&mut self) -> Result<(), GuidanceError> {
        let negated = self.rest.next_if_eq(&'^').is_some();
        let mut items = String::new();
        let mut first: Option<char> = None;
        loop {
            match self.class_item()? {
                None => break,
                Some(Escape::Class(inside, negated)) => {
                    push_first(&mut items, &mut first);
                    items += &if negated { format!("[^{inside}]") } else { inside };
                }
                Some(Escape::Char('-')) if first.is_some() && self.rest.peek() != Some(&']') => {
                    let from = first.take().unwrap_or_default();
                    match self.class_item()? {
                        Some(Escape::Char(to)) if from <= to => {
                            push_char(&mut items, from);
                            items.push('-');
                            push_char(&mut items, to);
                        }
                        _ => return Err(refused("a range in a class has no end, or ends first")),
                    }
                }
                Some(Escape::Char(c)) => {
                    push_first(&mut items, &mut first);
                    first = Some(c);
                }
            }
        }
        push_first(&mut items, &mut first);
        self.out += &match (items.is_empty(), negated) {
            (true, false) => return Err(refused("an empty class matches nothing")),
            (true, true) => ANY.to_owned(),
            (false, negated) => format!("[{}{items}]", if negated { "^" } else { "" }),
        };
        Ok(())
    }

    /// The next item of a class; `None` at its end. An escaped hyphen is a range like a plain one only between characters, where
    /// JavaScript would not take it for one: it is rare enough to be refused.
    fn class_item(&mut self) -> Result<Option<Escape>, GuidanceError> {
        let c = self.rest.next().ok_or(refused("a class is not closed"))?;
        let doubled = self.rest.peek() == Some(&c) && "&-~!#$%*+,.:;<=>?@^`".contains(c);
        Ok(Some(match c {
            ']' => return Ok(None),
            '[' if self.sets => return Err(refused("classes in classes are not supported")),
            _ if self.sets && doubled => {
                return Err(refused("operators in classes are not supported"));
            }
            '\\' if self.rest.peek() == Some(&'-') => {
                self.rest.next();
                Escape::Class("\\x{2d}".into(), false)
            }
            '\\' => self.escape(true)?,
            c => Escape::Char(c),
        }))
    }
}

fn push_first(items: &mut String, first: &mut Option<char>) {
    if let Some(c) = first.take() {
        push_char(items, c);
    }
}

/// Writes a character so that it stands for itself.
fn push_char(out: &mut String, c: char) {
    if c.is_ascii_alphanumeric() {
        out.push(c);
    } else {
        out.push_str(&format!("\\x{{{:x}}}", u32::from(c)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, flags: &str, extent: Extent, expected: &str) {
        assert_eq!(translated(pattern, flags, extent).expect(pattern), expected, "{pattern}");
    }

    #[test]
    fn patterns_are_rewritten() {
        let whole = |pattern: &str, flags: &str, expected: &str| {
            check(pattern, flags, Extent::Whole, &format!("(?:{expected})"));
        };
        whole("^a.c$", "", &format!("(?:a{DOT}c)"));
        whole("a.c", "sg", "(?:a(?s:.)c)");
        whole(r"\d+\/\w", "", r"(?:[0-9]+\x{2f}[0-9A-Za-z_])");
        whole(r"a\$", "", r"(?:a\x{24})");
        whole("a/b|[|]", "", r"(?:a\/b)|(?:[\x{7c}])");
        whole(r"(?<year>\d{4})(?:-|\.)", "", r"(?:([0-9]{4})(?:-|\x{2e}))");
        whole("[a&&b[-]", "", r"(?:[a\x{26}\x{26}b\x{5b}\x{2d}])");
        whole(r"[^\d\-x-z]", "", r"(?:[^0-9\x{2d}x-z])");
        whole(r"[\D]", "", "(?:[[^0-9]])");
        whole("[^]", "", "(?:(?s:.))");
        whole(r"\ud83d\ude00\u{41}", "u", r"(?:\x{1f600}A)");
        whole(r"\p{Script=Greek}", "u", r"(?:[\p{Script=Greek}])");
        whole(r"\cJ\x41\0", "", r"(?:\x{a}A\x{0})");
        check("a", "i", Extent::Whole, "(?i:(?:a))");
        check("^a|b$|c", "", Extent::Part, "(?:(?:a)(?s:.*)|(?s:.*)(?:b)|(?s:.*)(?:c)(?s:.*))");
    }

    #[test]
    fn what_has_no_counterpart_is_refused() {
        for (pattern, flags) in [
            ("a(?=b)", ""),
            ("a(?!b)", ""),
            ("(?<=a)b", ""),
            (r"(a)\1", ""),
            (r"(?<n>a)\k<n>", ""),
            (r"\ba", ""),
            ("a^b", ""),
            ("(a|^b)c", ""),
            ("[]", ""),
            ("[z-a]", ""),
            ("[a", ""),
            ("a\\", ""),
            (r"\xZZ", ""),
            (r"\ud83d", ""),
            (r"\q", "u"),
            (r"\p{", "u"),
            ("[a&&b]", "v"),
            ("[[a]]", "v"),
            ("(?i:a)", ""),
            ("a", "x"),
        ] {
            let refused = translated(pattern, flags, Extent::Whole);
            assert!(matches!(refused, Err(GuidanceError::Regex { .. })), "{pattern}: {refused:?}");
        }
    }
}
