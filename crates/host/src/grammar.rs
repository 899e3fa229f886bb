//! Grammars that replies are constrained to: of requests, and of tool calls that requests demand.

mod call;
mod formats;
mod gbnf;
mod lark;

pub(crate) use call::call_grammar;
pub(crate) use formats::Formats;
