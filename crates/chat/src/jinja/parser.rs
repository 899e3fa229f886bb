//! Pieces to statements.

use super::ast::{Body, Expr, For, Macro, Stmt, StmtKind, Target};
use super::expressions::Tokens;
use super::lexer::{Piece, Token};
use super::value::Value;
use crate::ChatError;

/// How deeply statements may be nested, and expressions within one tag.
pub(super) const NESTING_LIMIT: usize = 40;

/// Parses a template.
pub(super) fn parse(source: &str) -> Result<Body, ChatError> {
    let mut parser =
        Parser { pieces: super::lexer::pieces(source)?.into_iter(), line: 1, depth: 0 };
    parser.body(&[]).map(|(body, _)| body)
}

struct Parser {
    pieces: std::vec::IntoIter<(u32, Piece)>,
    line: u32,
    depth: usize,
}

/// The tag that ended a body, and the rest of its tokens.
type End = Option<(String, Tokens)>;

impl Parser {
    /// Statements up to one of the tags in `ends`, or to the end of the template.
    fn body(&mut self, ends: &[&str]) -> Result<(Body, End), ChatError> {
        self.depth += 1;
        if self.depth > NESTING_LIMIT {
            return Err(ChatError::TemplateLimit { line: self.line, limit: "the nesting of tags" });
        }
        let mut body = Body::new();
        while let Some((line, piece)) = self.pieces.next() {
            self.line = line;
            let kind = match piece {
                Piece::Text(text) => StmtKind::Text(text),
                Piece::Output(tokens) => {
                    let mut tokens = Tokens::new(tokens, line);
                    let value = tokens.expression()?;
                    tokens.end()?;
                    StmtKind::Output(value)
                }
                Piece::Tag(tokens) => {
                    let mut tokens = Tokens::new(tokens, line);
                    let tag = tokens.name()?;
                    if ends.contains(&tag.as_str()) {
                        self.depth -= 1;
                        return Ok((body, Some((tag, tokens))));
                    }
                    self.tag(&tag, tokens)?
                }
            };
            body.push(Stmt { line, kind });
        }
        self.depth -= 1;
        if ends.is_empty() { Ok((body, None)) } else { Err(self.wrong("a closing tag")) }
    }

    fn tag(&mut self, tag: &str, mut tokens: Tokens) -> Result<StmtKind, ChatError> {
        let kind = match tag {
            "if" => return self.if_tag(tokens),
            "for" => return self.for_tag(tokens),
            "set" => return self.set_tag(tokens),
            "macro" => return self.macro_tag(tokens),
            "generation" => StmtKind::Block(self.closed_body("endgeneration")?),
            "break" => StmtKind::Break,
            "continue" => StmtKind::Continue,
            "elif" | "else" => return Err(self.wrong("an open `if` or `for`")),
            _ if tag.starts_with("end") => return Err(self.wrong("an open tag of this kind")),
            _ => {
                return Err(ChatError::TemplateUnsupported {
                    line: self.line,
                    what: format!("the tag `{tag}`"),
                });
            }
        };
        tokens.end()?;
        Ok(kind)
    }

    fn if_tag(&mut self, mut tokens: Tokens) -> Result<StmtKind, ChatError> {
        let mut branches = Vec::new();
        let mut condition = tokens.expression()?;
        tokens.end()?;
        loop {
            let (body, end) = self.body(&["elif", "else", "endif"])?;
            branches.push((condition, body));
            let (tag, mut tokens) = end.ok_or_else(|| self.wrong("`endif`"))?;
            match tag.as_str() {
                "elif" => condition = tokens.expression()?,
                "else" => {
                    tokens.end()?;
                    branches.push((Expr::Const(Value::Bool(true)), self.closed_body("endif")?));
                    return Ok(StmtKind::If(branches));
                }
                _ => {
                    tokens.end()?;
                    return Ok(StmtKind::If(branches));
                }
            }
            tokens.end()?;
        }
    }

    fn for_tag(&mut self, mut tokens: Tokens) -> Result<StmtKind, ChatError> {
        let target = Target::Names(tokens.names()?);
        tokens.expect_name("in", "`in`")?;
        // Without a condition of its own: `if` starts the loop's filter here.
        let iterable = tokens.disjunction()?;
        let filter = if tokens.eat_name("if") { Some(tokens.expression()?) } else { None };
        if tokens.eat_name("recursive") {
            return Err(ChatError::TemplateUnsupported {
                line: self.line,
                what: "a recursive loop".into(),
            });
        }
        tokens.end()?;
        let (body, end) = self.body(&["else", "endfor"])?;
        let (tag, mut tokens) = end.ok_or_else(|| self.wrong("`endfor`"))?;
        tokens.end()?;
        let otherwise = if tag == "else" { self.closed_body("endfor")? } else { Body::new() };
        Ok(StmtKind::For(Box::new(For { target, iterable, filter, body, otherwise })))
    }

    fn set_tag(&mut self, mut tokens: Tokens) -> Result<StmtKind, ChatError> {
        let mut names = tokens.names()?;
        let target = match (names.pop(), tokens.eat(".")) {
            (Some(name), true) if names.is_empty() => Target::Attribute(name, tokens.name()?),
            (Some(name), false) => {
                names.push(name);
                Target::Names(names)
            }
            _ => return Err(self.wrong("a name")),
        };
        if tokens.eat("=") {
            let value = tokens.tuple()?;
            tokens.end()?;
            return Ok(StmtKind::Set(target, value));
        }
        tokens.end()?;
        Ok(StmtKind::SetBlock(target, self.closed_body("endset")?))
    }

    fn macro_tag(&mut self, mut tokens: Tokens) -> Result<StmtKind, ChatError> {
        let name = tokens.name()?;
        tokens.expect("(", "`(`")?;
        let mut parameters = Vec::new();
        while !tokens.eat(")") {
            let parameter = tokens.name()?;
            let default = if tokens.eat("=") { Some(tokens.expression()?) } else { None };
            parameters.push((parameter, default));
            if !tokens.eat(",") {
                tokens.expect(")", "`,` or `)`")?;
                break;
            }
        }
        tokens.end()?;
        Ok(StmtKind::Macro(Macro { name, parameters, body: self.closed_body("endmacro")? }))
    }

    /// A body with one possible end, which may repeat a name (`{% endmacro f %}`).
    fn closed_body(&mut self, end: &str) -> Result<Body, ChatError> {
        let (body, end) = self.body(&[end])?;
        if let Some((_, mut tokens)) = end {
            if matches!(tokens.peek(), Some(Token::Name(_))) {
                tokens.name()?;
            }
            tokens.end()?;
        }
        Ok(body)
    }

    fn wrong(&self, expected: &'static str) -> ChatError {
        ChatError::TemplateSyntax { line: self.line, expected }
    }
}
