//! A parsed template. Chains of operators and of postfixes are lists, so that depth comes from nesting alone.

use super::value::Value;

pub(super) type Body = Vec<Stmt>;

pub(super) struct Stmt {
    pub(super) line: u32,
    pub(super) kind: StmtKind,
}

pub(super) enum StmtKind {
    Text(String),
    Output(Expr),
    /// Conditions with their bodies; `else` comes as the condition `true`.
    If(Vec<(Expr, Body)>),
    For(Box<For>),
    Set(Target, Expr),
    SetBlock(Target, Body),
    Macro(Macro),
    /// A block that changes nothing (`generation`).
    Block(Body),
    Break,
    Continue,
}

pub(super) struct For {
    pub(super) target: Target,
    pub(super) iterable: Expr,
    pub(super) filter: Option<Expr>,
    pub(super) body: Body,
    pub(super) otherwise: Body,
}

pub(super) enum Target {
    Names(Vec<String>),
    /// An attribute of a namespace.
    Attribute(String, String),
}

pub(super) struct Macro {
    pub(super) name: String,
    pub(super) parameters: Vec<(String, Option<Expr>)>,
    pub(super) body: Body,
}

pub(super) enum Expr {
    Const(Value),
    Name(String),
    List(Vec<Self>),
    Dict(Vec<(Self, Self)>),
    Not(Box<Self>),
    Negate(Box<Self>),
    /// Operators of one precedence, applied left to right.
    Arithmetic(Box<Self>, Vec<(Arithmetic, Self)>),
    /// `a < b < c` holds if each pair does.
    Compare(Box<Self>, Vec<(Comparison, Self)>),
    And(Vec<Self>),
    Or(Vec<Self>),
    /// Condition, value if it holds, value if not.
    If(Box<(Self, Self, Option<Self>)>),
    /// A value and what is done to it, one step after the other.
    Postfix(Box<Self>, Vec<Step>),
}

pub(super) enum Step {
    Attribute(String),
    Item(Expr),
    Slice(Box<[Option<Expr>; 3]>),
    Call(Arguments),
    Filter(String, Arguments),
    Test { name: String, negated: bool, arguments: Arguments },
}

#[derive(Default)]
pub(super) struct Arguments {
    pub(super) positional: Vec<Expr>,
    pub(super) named: Vec<(String, Expr)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Concatenate,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
    Power,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
}
