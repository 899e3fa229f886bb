//! Formats that replies are constrained to: those of requests, and tool calls that requests demand.

mod formats;
mod gbnf;
mod lark;

pub(crate) use formats::Formats;
