//! Compiles a template with checks around every instruction that makes, compares or searches values.
//!
//! The engine limits steps, not what a step does. It runs a list of instructions, so the checks are instructions, too.

use std::collections::BTreeMap;

use minijinja::machinery::ast::{BinOpKind, CallArg, Expr, Stmt};
use minijinja::machinery::{
    CodeGenerator, Instruction, Instructions, Token, WhitespaceConfig, parse, tokenize,
};
use minijinja::value::Kwargs;
use minijinja::{Error, Value};

use super::budget::{Budget, refused};
use super::checks::Check;

/// Operators of one expression, and `elif`s of a template: the engine recurses for each.
const CHAIN_LIMIT: usize = 250;
/// Bytes of a product of constants, which the engine computes as it compiles.
const CONSTANT_LIMIT: usize = 1 << 10;

/// What the engine runs: the template's instructions, and those of its blocks.
pub(super) struct Program<'s> {
    pub(super) instructions: Instructions<'s>,
    pub(super) blocks: BTreeMap<&'s str, Instructions<'s>>,
}

impl<'s> Program<'s> {
    /// Parses and compiles `source`.
    pub(super) fn new(source: &'s str, budget: &Budget) -> Result<Self, Error> {
        let whitespace = WhitespaceConfig {
            keep_trailing_newline: false,
            lstrip_blocks: true,
            trim_blocks: true,
        };
        check_chains(source, whitespace)?;
        let syntax = parse(source, NAME, Default::default(), whitespace)?;
        check_constants(&syntax)?;
        let mut generator = CodeGenerator::new(NAME, source);
        generator.compile_stmt(&syntax);
        let (instructions, blocks) = generator.finish();
        let blocks =
            blocks.iter().map(|(name, block)| Ok((*name, checked(block, source, budget)?)));
        let blocks = blocks.collect::<Result<_, Error>>()?;
        Ok(Self { instructions: checked(&instructions, source, budget)?, blocks })
    }
}

/// The name of the template in the engine.
const NAME: &str = "chat template";

/// Refuses what would make the engine's parser and compiler recurse deeply. Its own limit does not count operators.
fn check_chains(source: &str, whitespace: WhitespaceConfig) -> Result<(), Error> {
    let mut branches = 0;
    // The operators since the last comma, for each open bracket.
    let mut open = vec![0];
    for token in tokenize(source, false, Default::default(), whitespace) {
        let (token, _) = token?;
        match token {
            Token::BlockStart | Token::VariableStart => open = vec![0],
            Token::Ident("elif") => branches += 1,
            Token::Ident("not" | "and" | "or" | "in" | "is" | "if" | "else") => bump(&mut open),
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => {
                bump(&mut open);
                open.push(0);
            }
            Token::ParenClose | Token::BracketClose | Token::BraceClose => {
                open.pop();
            }
            Token::Comma => {
                if let Some(count) = open.last_mut() {
                    *count = 0;
                }
            }
            Token::TemplateData(_)
            | Token::VariableEnd
            | Token::BlockEnd
            | Token::Ident(_)
            | Token::Str(_)
            | Token::String(_)
            | Token::Int(_)
            | Token::Int128(_)
            | Token::Float(_)
            | Token::Colon => {}
            _ => bump(&mut open),
        }
        if branches > CHAIN_LIMIT || open.iter().sum::<usize>() > CHAIN_LIMIT {
            return Err(refused(format!(
                "an expression or a chain of elif has more than {CHAIN_LIMIT} parts"
            )));
        }
    }
    Ok(())
}

fn bump(open: &mut Vec<usize>) {
    match open.last_mut() {
        Some(count) => *count += 1,
        None => open.push(1),
    }
}

/// Refuses products of constants that would be large.
fn check_constants(syntax: &Stmt<'_>) -> Result<(), Error> {
    let (mut statements, mut expressions) = (vec![syntax], Vec::new());
    while let Some(statement) = statements.pop() {
        let bodies: [&[Stmt<'_>]; 2] = match statement {
            Stmt::Template(s) => [&s.children, &[]],
            Stmt::ForLoop(s) => {
                expressions.push(&s.iter);
                expressions.extend(&s.filter_expr);
                [&s.body, &s.else_body]
            }
            Stmt::IfCond(s) => {
                expressions.push(&s.expr);
                [&s.true_body, &s.false_body]
            }
            Stmt::WithBlock(s) => {
                expressions.extend(s.assignments.iter().map(|(_, value)| value));
                [&s.body, &[]]
            }
            Stmt::SetBlock(s) => {
                expressions.extend(&s.filter);
                [&s.body, &[]]
            }
            Stmt::AutoEscape(s) => {
                expressions.push(&s.enabled);
                [&s.body, &[]]
            }
            Stmt::FilterBlock(s) => {
                expressions.push(&s.filter);
                [&s.body, &[]]
            }
            Stmt::Block(s) => [&s.body, &[]],
            Stmt::Macro(s) => {
                expressions.extend(&s.defaults);
                [&s.body, &[]]
            }
            Stmt::CallBlock(s) => {
                expressions.extend(arguments(&s.call.args));
                expressions.push(&s.call.expr);
                expressions.extend(&s.macro_decl.defaults);
                [&s.macro_decl.body, &[]]
            }
            Stmt::EmitExpr(s) => {
                expressions.push(&s.expr);
                [&[], &[]]
            }
            Stmt::Set(s) => {
                expressions.extend([&s.target, &s.expr]);
                [&[], &[]]
            }
            Stmt::Do(s) => {
                expressions.push(&s.call.expr);
                expressions.extend(arguments(&s.call.args));
                [&[], &[]]
            }
            Stmt::Import(s) => {
                expressions.push(&s.expr);
                [&[], &[]]
            }
            Stmt::FromImport(s) => {
                expressions.push(&s.expr);
                [&[], &[]]
            }
            Stmt::Extends(s) => {
                expressions.push(&s.name);
                [&[], &[]]
            }
            Stmt::Include(s) => {
                expressions.push(&s.name);
                [&[], &[]]
            }
            Stmt::EmitRaw(_) | Stmt::Continue(_) | Stmt::Break(_) => [&[], &[]],
        };
        statements.extend(bodies.into_iter().flatten());
    }
    expressions.into_iter().try_for_each(|expression| constant(expression).map(|_| ()))
}

fn arguments<'x, 's>(args: &'x [CallArg<'s>]) -> impl Iterator<Item = &'x Expr<'s>> {
    args.iter().map(|arg| match arg {
        CallArg::Pos(value)
        | CallArg::Kwarg(_, value)
        | CallArg::PosSplat(value)
        | CallArg::KwargSplat(value) => value,
    })
}

/// The value of an expression that the engine computes as it compiles; parts are checked first.
fn constant(expression: &Expr<'_>) -> Result<Option<Value>, Error> {
    let mut parts: Vec<&Expr<'_>> = Vec::new();
    match expression {
        Expr::Var(_) | Expr::Const(_) => {}
        Expr::Slice(e) => {
            parts.push(&e.expr);
            parts.extend([&e.start, &e.stop, &e.step].into_iter().flatten());
        }
        Expr::UnaryOp(e) => parts.push(&e.expr),
        Expr::BinOp(e) => {
            if let (Some(left), Some(right)) = (constant(&e.left)?, constant(&e.right)?)
                && matches!(e.op, BinOpKind::Mul)
            {
                for (value, count) in [(&left, &right), (&right, &left)] {
                    let bytes = value.as_str().map_or(0, str::len);
                    let bytes = bytes.saturating_mul(count.as_usize().unwrap_or(0));
                    if bytes > CONSTANT_LIMIT || value.as_object().is_some() {
                        return Err(refused(format!(
                            "a product of constants has more than {CONSTANT_LIMIT} bytes, or is of a list"
                        )));
                    }
                }
            }
        }
        Expr::Compare(e) => {
            parts.push(&e.expr);
            parts.extend(e.ops.iter().map(|op| &op.expr));
        }
        Expr::IfExpr(e) => {
            parts.extend([&e.test_expr, &e.true_expr]);
            parts.extend(&e.false_expr);
        }
        Expr::Filter(e) => {
            parts.extend(&e.expr);
            parts.extend(arguments(&e.args));
        }
        Expr::Test(e) => {
            parts.push(&e.expr);
            parts.extend(arguments(&e.args));
        }
        Expr::GetAttr(e) => parts.push(&e.expr),
        Expr::GetItem(e) => parts.extend([&e.expr, &e.subscript_expr]),
        Expr::Call(e) => {
            parts.push(&e.expr);
            parts.extend(arguments(&e.args));
        }
        Expr::List(e) => parts.extend(&e.items),
        Expr::Map(e) => parts.extend(e.keys.iter().chain(&e.values)),
    }
    for part in parts {
        constant(part)?;
    }
    Ok(expression.as_const())
}

/// The instructions with their checks.
fn checked<'s>(
    instructions: &Instructions<'s>,
    source: &'s str,
    budget: &Budget,
) -> Result<Instructions<'s>, Error> {
    let all = (0..).map_while(|at| instructions.get(at).map(|instruction| (at, instruction)));
    let mut groups = Vec::new();
    let mut starts = Vec::new();
    let mut next = 0;
    for (at, instruction) in all {
        let group = with_checks(instruction, budget)?;
        starts.push(next);
        next += u32::try_from(group.len()).map_err(|_| refused("it is too long"))?;
        groups.push((at, group));
    }
    starts.push(next);
    let mut out = Instructions::new(NAME, source);
    for (at, mut group) in groups {
        for mut instruction in group.drain(..) {
            if let Instruction::Iterate(to)
            | Instruction::Jump(to)
            | Instruction::JumpIfFalse(to)
            | Instruction::JumpIfFalseOrPop(to)
            | Instruction::JumpIfTrueOrPop(to)
            | Instruction::BuildMacro(_, to, _) = &mut instruction
            {
                let target = usize::try_from(*to).ok().and_then(|to| starts.get(to));
                *to = *target.ok_or_else(|| refused("it jumps out of its end"))?;
            }
            match instructions.get_span(at) {
                Some(span) => out.add_with_span(instruction, span),
                None => {
                    let line = instructions.get_line(at).unwrap_or(0);
                    out.add_with_line(instruction, u16::try_from(line).unwrap_or(u16::MAX))
                }
            };
        }
    }
    Ok(out)
}

/// One instruction with its checks, in the order in which they run.
fn with_checks<'s>(
    instruction: &Instruction<'s>,
    budget: &Budget,
) -> Result<Vec<Instruction<'s>>, Error> {
    let call = |check: Check, count| Instruction::CallFunction(check.name(), Some(count));
    // A check of `count` operands returns them in a list.
    let operands = |check: Check, count: u16| {
        vec![call(check, count), Instruction::UnpackList(usize::from(count)), instruction.clone()]
    };
    let then_adopt = |mut group: Vec<Instruction<'s>>| {
        group.push(call(Check::Adopt, 1));
        group
    };
    Ok(match instruction {
        Instruction::EmitRaw(text) => {
            vec![Instruction::LoadConst(Value::from(*text)), Instruction::Emit]
        }
        Instruction::SetAttr(name) => vec![
            Instruction::LoadConst(Value::from(*name)),
            call(Check::Assign, 3),
            Instruction::DiscardTop,
        ],
        // Named arguments are a map of their own kind, and stay it.
        Instruction::LoadConst(value)
            if value.as_object().is_none() || Kwargs::try_from(value.clone()).is_err() =>
        {
            vec![Instruction::LoadConst(budget.adopt(value.clone())?)]
        }
        Instruction::BuildMap(_) | Instruction::BuildList(_) => {
            then_adopt(vec![instruction.clone()])
        }
        Instruction::Slice => vec![call(Check::Slice, 4)],
        Instruction::Add | Instruction::StringConcat => then_adopt(operands(Check::Concatenate, 2)),
        Instruction::Mul => then_adopt(operands(Check::Repeat, 2)),
        Instruction::GetItem => operands(Check::Search, 2),
        Instruction::Eq
        | Instruction::Ne
        | Instruction::Gt
        | Instruction::Gte
        | Instruction::Lt
        | Instruction::Lte => operands(Check::Compare, 2),
        Instruction::In
        | Instruction::CompareAndPreserve(_)
        | Instruction::PerformTest(_, Some(2), _)
        | Instruction::CallMethod("changed", Some(2)) => operands(Check::Contains, 2),
        Instruction::PerformTest(_, Some(1), _) => operands(Check::Search, 1),
        Instruction::PerformTest(..) | Instruction::CallMethod("changed", _) => {
            return Err(refused("it calls a test or loop.changed with several values"));
        }
        Instruction::BuildMacro(..) => {
            vec![call(Check::Macro, 0), Instruction::DiscardTop, instruction.clone()]
        }
        other => vec![other.clone()],
    })
}
