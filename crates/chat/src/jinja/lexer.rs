//! Template text to pieces: plain text, `{{ … }}` and `{% … %}`, white space control applied, comments gone.
//!
//! White space follows the settings chat templates are written for: a line break behind a block tag is dropped
//! (`trim_blocks`), and so are blanks between the start of a line and a block tag (`lstrip_blocks`).

use crate::ChatError;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Name(String),
    Text(String),
    Int(i64),
    Float(f64),
    Operator(&'static str),
}

#[derive(Debug, PartialEq)]
pub(super) enum Piece {
    Text(String),
    Output(Vec<Token>),
    Tag(Vec<Token>),
}

/// The pieces of a template with their lines.
pub(super) fn pieces(source: &str) -> Result<Vec<(u32, Piece)>, ChatError> {
    let source = source.replace("\r\n", "\n");
    let source = source.strip_suffix('\n').unwrap_or(&source);
    let mut lexer = Lexer { source, at: 0, line: 1, counted: 0, at_line_start: true };
    let mut pieces = Vec::new();
    while lexer.at < source.len() {
        lexer.next(&mut pieces)?;
    }
    Ok(pieces)
}

/// Longer ones first.
const OPERATORS: [&str; 25] = [
    "**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<", ">", "=", "(", ")", "[",
    "]", "{", "}", ".", ",", ":", "|",
];

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    line: u32,
    /// How far lines have been counted.
    counted: usize,
    /// Whether the last tag took its line break along.
    at_line_start: bool,
}

impl Lexer<'_> {
    /// Text up to the next tag, and that tag.
    fn next(&mut self, pieces: &mut Vec<(u32, Piece)>) -> Result<(), ChatError> {
        let rest = &self.source[self.at..];
        let opening = rest
            .match_indices('{')
            .map(|(i, _)| i)
            .find(|i| rest[i + 1..].starts_with(['{', '%', '#']));
        let line = self.count_lines();
        let Some(opening) = opening else {
            pieces.push((line, Piece::Text(rest.to_owned())));
            self.at = self.source.len();
            return Ok(());
        };
        let tag = &rest[opening..opening + 2];
        let control = rest[opening + 2..].chars().next();
        let text = self.text_before(&rest[..opening], tag, control);
        if !text.is_empty() {
            pieces.push((line, Piece::Text(text.to_owned())));
        }
        self.at += opening + 2 + usize::from(matches!(control, Some('-' | '+')));
        let line = self.count_lines();
        match tag {
            "{#" => self.comment()?,
            "{{" => pieces.push((line, Piece::Output(self.tokens("}}")?))),
            _ => pieces.push((line, Piece::Tag(self.tokens("%}")?))),
        }
        Ok(())
    }

    fn text_before<'t>(&self, text: &'t str, tag: &str, control: Option<char>) -> &'t str {
        if control == Some('-') {
            return text.trim_end();
        }
        let line_start = text.rfind('\n').map(|i| i + 1).or(self.at_line_start.then_some(0));
        match line_start {
            Some(start)
                if tag != "{{"
                    && control != Some('+')
                    && text[start..].chars().all(char::is_whitespace) =>
            {
                &text[..start]
            }
            _ => text,
        }
    }

    fn comment(&mut self) -> Result<(), ChatError> {
        let end = self.source[self.at..].find("#}").ok_or_else(|| self.wrong("`#}`"))?;
        let control = self.source[..self.at + end].chars().next_back().filter(|_| end > 0);
        self.at += end + 2;
        self.close(true, control);
        Ok(())
    }

    /// The tokens of a tag, whose end is consumed.
    fn tokens(&mut self, end: &str) -> Result<Vec<Token>, ChatError> {
        let mut tokens = Vec::new();
        let mut braces = 0usize;
        loop {
            let rest = self.source[self.at..].trim_start();
            self.at = self.source.len() - rest.len();
            let control = rest.chars().next().filter(|c| matches!(c, '-' | '+'));
            let unsigned = &rest[control.map_or(0, char::len_utf8)..];
            if braces == 0 && unsigned.starts_with(end) {
                self.at = self.source.len() - unsigned.len() + end.len();
                self.close(end == "%}", control);
                return Ok(tokens);
            }
            let token = self.token(rest)?;
            match token {
                Token::Operator("{") => braces += 1,
                Token::Operator("}") => braces = braces.saturating_sub(1),
                _ => {}
            }
            tokens.push(token);
        }
    }

    /// Drops what the end of a tag takes along of the text behind it.
    fn close(&mut self, is_block: bool, control: Option<char>) {
        let rest = &self.source[self.at..];
        let taken = match control {
            Some('-') => rest.len() - rest.trim_start().len(),
            Some('+') => 0,
            _ => usize::from(is_block && rest.starts_with('\n')),
        };
        self.at_line_start = rest[..taken].ends_with('\n');
        self.at += taken;
    }

    fn token(&mut self, rest: &str) -> Result<Token, ChatError> {
        let first = rest.chars().next().ok_or_else(|| self.wrong("the end of the tag"))?;
        if first == '"' || first == '\'' {
            return self.text_literal(rest, first);
        }
        if first.is_ascii_digit() {
            return self.number(rest);
        }
        if first.is_alphabetic() || first == '_' {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            self.at += end;
            return Ok(Token::Name(rest[..end].to_owned()));
        }
        let known = OPERATORS.iter().find(|operator| rest.starts_with(**operator));
        let operator = known.ok_or_else(|| self.wrong("an operator"))?;
        self.at += operator.len();
        Ok(Token::Operator(operator))
    }

    fn number(&mut self, rest: &str) -> Result<Token, ChatError> {
        let digits =
            |text: &str| text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
        let mut end = digits(rest);
        let is_float = rest[end..].starts_with('.')
            && rest[end + 1..].starts_with(|c: char| c.is_ascii_digit());
        if is_float {
            end += 1 + digits(&rest[end + 1..]);
        }
        self.at += end;
        let text = rest[..end].replace('_', "");
        let token = if is_float {
            text.parse().ok().map(Token::Float)
        } else {
            text.parse().ok().map(Token::Int)
        };
        token.ok_or_else(|| self.wrong("a number that fits 64 bits"))
    }

    fn text_literal(&mut self, rest: &str, quote: char) -> Result<Token, ChatError> {
        let mut text = String::new();
        let mut characters = rest[1..].chars();
        while let Some(c) = characters.next() {
            match c {
                c if c == quote => {
                    self.at += rest.len() - characters.as_str().len();
                    return Ok(Token::Text(text));
                }
                '\\' => characters = unescape(&mut text, characters.as_str()).chars(),
                c => text.push(c),
            }
        }
        Err(self.wrong("a closing quote"))
    }

    fn count_lines(&mut self) -> u32 {
        let passed = self.source[self.counted..self.at].matches('\n').count();
        self.line = self.line.saturating_add(u32::try_from(passed).unwrap_or(u32::MAX));
        self.counted = self.at;
        self.line
    }

    fn wrong(&self, expected: &'static str) -> ChatError {
        ChatError::TemplateSyntax { line: self.line, expected }
    }
}

/// Appends what the escape at the start of `rest` (behind the backslash) stands for and returns the text behind it.
fn unescape<'t>(text: &mut String, rest: &'t str) -> &'t str {
    let coded = |digits: usize| {
        let code = rest.get(1..=digits).and_then(|hex| u32::from_str_radix(hex, 16).ok());
        code.and_then(char::from_u32).map(|c| (c, digits))
    };
    let Some(letter) = rest.chars().next() else { return rest };
    let decoded = match letter {
        'n' => Some(('\n', 0)),
        't' => Some(('\t', 0)),
        'r' => Some(('\r', 0)),
        '0' => Some(('\0', 0)),
        'x' => coded(2),
        'u' => coded(4),
        'U' => coded(8),
        '\\' | '\'' | '"' => Some((letter, 0)),
        _ => None,
    };
    match decoded {
        Some((c, digits)) => {
            text.push(c);
            &rest[1 + digits..]
        }
        // Not an escape: the backslash stays.
        None => {
            text.push('\\');
            rest
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, expected: &[&str]) {
        let pieces = pieces(source).unwrap();
        let shown: Vec<String> = pieces
            .into_iter()
            .map(|(_, piece)| match piece {
                Piece::Text(text) => text,
                Piece::Output(tokens) => format!("{{{tokens:?}}}"),
                Piece::Tag(_) => "%".into(),
            })
            .collect();
        assert_eq!(shown, expected, "{source:?}");
    }

    #[test]
    fn white_space_around_tags() {
        check("a\n  {% if x %}\n  b {%- endif -%} \n c\n", &["a\n", "%", "  b", "%", "c"]);
        check("  {% if %}{% endif %}\n\nb", &["%", "%", "\nb"]);
        check("a {% x %} b", &["a ", "%", " b"]);
        check("a\n  {%+ x +%}\nb", &["a\n  ", "%", "\nb"]);
        check("a {#- c -#} b{# {{ #}\nd", &["a", "b", "d"]);
        check(" {{- 1 -}} \n{{ 2 }}\n", &["{[Int(1)]}", "{[Int(2)]}"]);
    }

    #[test]
    fn literals() {
        check(r#"{{ 'a\n\'\x41\u00e9\q' "%}" }}"#, &[r#"{[Text("a\n'Aé\\q"), Text("%}")]}"#]);
        check(
            "{{ {'a':{}}}}",
            &[
                r#"{[Operator("{"), Text("a"), Operator(":"), Operator("{"), Operator("}"), Operator("}")]}"#,
            ],
        );
        check("{{ 1.5//x_1 }}", &[r#"{[Float(1.5), Operator("//"), Name("x_1")]}"#]);
    }

    #[test]
    fn errors_name_the_line() {
        for (source, line) in [
            ("a\n{{ 'x", 2),
            ("{# ", 1),
            ("\n\n{% if x", 3),
            ("{{ ? }}", 1),
            ("{{ 99999999999999999999 }}", 1),
        ] {
            assert!(
                matches!(pieces(source), Err(ChatError::TemplateSyntax { line: l, .. }) if l == line),
                "{source}"
            );
        }
    }
}
