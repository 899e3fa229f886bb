//! The tokens of one tag to expressions.

use super::ast::{Arguments, Arithmetic, Comparison, Expr, Step};
use super::lexer::Token;
use super::parser::NESTING_LIMIT;
use super::value::Value;
use crate::ChatError;

/// The tokens of a tag, from front to back.
pub(super) struct Tokens {
    tokens: std::iter::Peekable<std::vec::IntoIter<Token>>,
    line: u32,
    depth: usize,
}

impl Tokens {
    pub(super) fn new(tokens: Vec<Token>, line: u32) -> Self {
        Self { tokens: tokens.into_iter().peekable(), line, depth: 0 }
    }

    /// An expression, `a if b else c` included.
    pub(super) fn expression(&mut self) -> Result<Expr, ChatError> {
        self.nested(|tokens| {
            let value = tokens.disjunction()?;
            if !tokens.eat_name("if") {
                return Ok(value);
            }
            let condition = tokens.disjunction()?;
            let otherwise = if tokens.eat_name("else") { Some(tokens.expression()?) } else { None };
            Ok(Expr::If(Box::new((condition, value, otherwise))))
        })
    }

    /// Expressions with commas between them are a list, one alone is itself.
    pub(super) fn tuple(&mut self) -> Result<Expr, ChatError> {
        let first = self.expression()?;
        if self.peek() != Some(&Token::Operator(",")) {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.eat(",") {
            if matches!(self.peek(), None | Some(Token::Operator(")"))) {
                break;
            }
            items.push(self.expression()?);
        }
        Ok(Expr::List(items))
    }

    /// `or` and all that binds closer.
    pub(super) fn disjunction(&mut self) -> Result<Expr, ChatError> {
        let mut parts = vec![self.conjunction()?];
        while self.eat_name("or") {
            parts.push(self.conjunction()?);
        }
        Ok(single_or(parts, Expr::Or))
    }

    fn conjunction(&mut self) -> Result<Expr, ChatError> {
        let mut parts = vec![self.negation()?];
        while self.eat_name("and") {
            parts.push(self.negation()?);
        }
        Ok(single_or(parts, Expr::And))
    }

    fn negation(&mut self) -> Result<Expr, ChatError> {
        if self.eat_name("not") {
            return self.nested(|tokens| Ok(Expr::Not(Box::new(tokens.negation()?))));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Expr, ChatError> {
        let first = self.sum()?;
        let mut rest = Vec::new();
        while let Some(operator) = self.comparison_operator()? {
            rest.push((operator, self.sum()?));
        }
        Ok(if rest.is_empty() { first } else { Expr::Compare(Box::new(first), rest) })
    }

    fn comparison_operator(&mut self) -> Result<Option<Comparison>, ChatError> {
        const OPERATORS: [(&str, Comparison); 6] = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<", Comparison::Less),
            ("<=", Comparison::LessOrEqual),
            (">", Comparison::Greater),
            (">=", Comparison::GreaterOrEqual),
        ];
        if self.eat_name("in") {
            return Ok(Some(Comparison::In));
        }
        if self.eat_name("not") {
            self.expect_name("in", "`in`")?;
            return Ok(Some(Comparison::NotIn));
        }
        Ok(OPERATORS.into_iter().find(|(text, _)| self.eat(text)).map(|(_, operator)| operator))
    }

    fn sum(&mut self) -> Result<Expr, ChatError> {
        self.chain(&[("+", Arithmetic::Add), ("-", Arithmetic::Subtract)], |tokens| {
            tokens.chain(&[("~", Arithmetic::Concatenate)], Self::product)
        })
    }

    fn product(&mut self) -> Result<Expr, ChatError> {
        const OPERATORS: [(&str, Arithmetic); 4] = [
            ("*", Arithmetic::Multiply),
            ("/", Arithmetic::Divide),
            ("//", Arithmetic::FloorDivide),
            ("%", Arithmetic::Remainder),
        ];
        self.chain(&OPERATORS, |tokens| tokens.chain(&[("**", Arithmetic::Power)], Self::unary))
    }

    fn chain(
        &mut self,
        operators: &[(&'static str, Arithmetic)],
        operand: impl Fn(&mut Self) -> Result<Expr, ChatError>,
    ) -> Result<Expr, ChatError> {
        let first = operand(self)?;
        let mut rest = Vec::new();
        while let Some((_, operator)) = operators.iter().find(|(text, _)| self.eat(text)) {
            rest.push((*operator, operand(self)?));
        }
        Ok(if rest.is_empty() { first } else { Expr::Arithmetic(Box::new(first), rest) })
    }

    fn unary(&mut self) -> Result<Expr, ChatError> {
        if self.eat("-") {
            return self.nested(|tokens| Ok(Expr::Negate(Box::new(tokens.unary()?))));
        }
        if self.eat("+") {
            return self.nested(Self::unary);
        }
        let base = self.primary()?;
        let mut steps = Vec::new();
        while let Some(step) = self.step()? {
            steps.push(step);
        }
        Ok(if steps.is_empty() { base } else { Expr::Postfix(Box::new(base), steps) })
    }

    fn primary(&mut self) -> Result<Expr, ChatError> {
        match self.tokens.next() {
            Some(Token::Name(name)) => Ok(match name.as_str() {
                "true" | "True" => Expr::Const(Value::Bool(true)),
                "false" | "False" => Expr::Const(Value::Bool(false)),
                "none" | "None" => Expr::Const(Value::None),
                _ => Expr::Name(name),
            }),
            Some(Token::Text(mut text)) => {
                while let Some(Token::Text(more)) =
                    self.tokens.next_if(|t| matches!(t, Token::Text(_)))
                {
                    text.push_str(&more);
                }
                Ok(Expr::Const(Value::from(text)))
            }
            Some(Token::Int(number)) => Ok(Expr::Const(Value::Int(number.into()))),
            Some(Token::Float(number)) => Ok(Expr::Const(Value::Float(number))),
            Some(Token::Operator("(")) => {
                if self.eat(")") {
                    return Ok(Expr::List(Vec::new()));
                }
                let inner = self.tuple()?;
                self.expect(")", "`)`")?;
                Ok(inner)
            }
            Some(Token::Operator("[")) => self.list(),
            Some(Token::Operator("{")) => self.dict(),
            _ => Err(self.wrong("a value")),
        }
    }

    fn list(&mut self) -> Result<Expr, ChatError> {
        let mut items = Vec::new();
        while !self.eat("]") {
            items.push(self.expression()?);
            if !self.eat(",") {
                self.expect("]", "`,` or `]`")?;
                break;
            }
        }
        Ok(Expr::List(items))
    }

    fn dict(&mut self) -> Result<Expr, ChatError> {
        let mut entries = Vec::new();
        while !self.eat("}") {
            let key = self.expression()?;
            self.expect(":", "`:`")?;
            entries.push((key, self.expression()?));
            if !self.eat(",") {
                self.expect("}", "`,` or `}`")?;
                break;
            }
        }
        Ok(Expr::Dict(entries))
    }

    fn step(&mut self) -> Result<Option<Step>, ChatError> {
        if self.eat(".") {
            return Ok(Some(match self.tokens.next() {
                Some(Token::Name(name)) => Step::Attribute(name),
                Some(Token::Int(index)) => Step::Item(Expr::Const(Value::Int(index.into()))),
                _ => return Err(self.wrong("an attribute")),
            }));
        }
        if self.eat("[") {
            return self.subscript().map(Some);
        }
        if self.eat("(") {
            return self.arguments().map(Step::Call).map(Some);
        }
        if self.eat("|") {
            let name = self.name()?;
            let arguments = if self.eat("(") { self.arguments()? } else { Arguments::default() };
            return Ok(Some(Step::Filter(name, arguments)));
        }
        if self.eat_name("is") {
            return self.test().map(Some);
        }
        Ok(None)
    }

    fn subscript(&mut self) -> Result<Step, ChatError> {
        let mut bounds = [None, None, None];
        let mut colons = 0;
        loop {
            if !matches!(self.peek(), Some(Token::Operator(":" | "]"))) {
                bounds[colons] = Some(self.expression()?);
            }
            if self.eat("]") {
                break;
            }
            self.expect(":", "`:` or `]`")?;
            colons += 1;
            if colons == bounds.len() {
                return Err(self.wrong("`]`"));
            }
        }
        if colons > 0 {
            return Ok(Step::Slice(Box::new(bounds)));
        }
        let [index, ..] = bounds;
        index.map(Step::Item).ok_or_else(|| self.wrong("an index"))
    }

    fn arguments(&mut self) -> Result<Arguments, ChatError> {
        let mut arguments = Arguments::default();
        while !self.eat(")") {
            let value = self.expression()?;
            match value {
                Expr::Name(name) if self.eat("=") => {
                    arguments.named.push((name, self.expression()?))
                }
                value => arguments.positional.push(value),
            }
            if !self.eat(",") {
                self.expect(")", "`,` or `)`")?;
                break;
            }
        }
        Ok(arguments)
    }

    /// `is [not] name [argument]`, from behind the `is`.
    fn test(&mut self) -> Result<Step, ChatError> {
        let negated = self.eat_name("not");
        let name = self.name()?;
        let bare_argument = match self.peek() {
            Some(Token::Name(word)) => {
                !matches!(word.as_str(), "else" | "or" | "and" | "if" | "is" | "in" | "not")
            }
            Some(Token::Operator(operator)) => matches!(*operator, "[" | "{"),
            Some(_) => true,
            None => false,
        };
        let mut arguments = Arguments::default();
        if self.eat("(") {
            arguments = self.arguments()?;
        } else if bare_argument {
            arguments.positional.push(self.nested(Self::unary)?);
        }
        Ok(Step::Test { name, negated, arguments })
    }

    /// Names with commas between them, possibly in brackets.
    pub(super) fn names(&mut self) -> Result<Vec<String>, ChatError> {
        let bracket = self.eat("(");
        let mut names = vec![self.name()?];
        while self.eat(",") {
            names.push(self.name()?);
        }
        if bracket {
            self.expect(")", "`)`")?;
        }
        Ok(names)
    }

    pub(super) fn name(&mut self) -> Result<String, ChatError> {
        match self.tokens.next() {
            Some(Token::Name(name)) => Ok(name),
            _ => Err(self.wrong("a name")),
        }
    }

    pub(super) fn peek(&mut self) -> Option<&Token> {
        self.tokens.peek()
    }

    pub(super) fn eat(&mut self, operator: &'static str) -> bool {
        self.tokens.next_if_eq(&Token::Operator(operator)).is_some()
    }

    pub(super) fn eat_name(&mut self, name: &str) -> bool {
        self.tokens.next_if(|token| matches!(token, Token::Name(n) if n == name)).is_some()
    }

    pub(super) fn expect(
        &mut self,
        operator: &'static str,
        expected: &'static str,
    ) -> Result<(), ChatError> {
        if self.eat(operator) { Ok(()) } else { Err(self.wrong(expected)) }
    }

    pub(super) fn expect_name(
        &mut self,
        name: &str,
        expected: &'static str,
    ) -> Result<(), ChatError> {
        if self.eat_name(name) { Ok(()) } else { Err(self.wrong(expected)) }
    }

    pub(super) fn end(&mut self) -> Result<(), ChatError> {
        if self.peek().is_none() { Ok(()) } else { Err(self.wrong("the end of the tag")) }
    }

    /// Guards every recursion of the grammar.
    fn nested(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<Expr, ChatError>,
    ) -> Result<Expr, ChatError> {
        self.depth += 1;
        if self.depth > NESTING_LIMIT {
            return Err(ChatError::TemplateLimit {
                line: self.line,
                limit: "the nesting of an expression",
            });
        }
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn wrong(&self, expected: &'static str) -> ChatError {
        ChatError::TemplateSyntax { line: self.line, expected }
    }
}

fn single_or(mut parts: Vec<Expr>, combine: impl FnOnce(Vec<Expr>) -> Expr) -> Expr {
    if parts.len() == 1 { parts.swap_remove(0) } else { combine(parts) }
}
