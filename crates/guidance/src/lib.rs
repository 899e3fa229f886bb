//! Constrained replies: which tokens may come next. A [`Vocabulary`] is built once for a model and compiles [`Format`]s
//! to [`Matcher`]s, one for each reply.
//!
//! This crate wraps llguidance. It knows tokens only as bytes, so that it runs next to an engine (in a page: as a second
//! module) that knows the model.
//!
//! ```
//! use rullama_guidance::{Format, TokenTexts, Vocabulary};
//! use serde_json::json;
//!
//! # fn main() -> Result<(), rullama_guidance::GuidanceError> {
//! let texts = TokenTexts { texts: ["", "t", "f", "rue", "alse"].map(Vec::from).into(), ends: vec![0] };
//! let vocabulary = Vocabulary::new(&texts)?;
//! let mut reply = vocabulary.compile(&Format::json(json!({ "type": "boolean" })))?;
//! assert_eq!(reply.mask()?, [0b00110]);
//! assert!(!reply.commit(1)?);
//! assert_eq!(reply.mask()?, [0b01000]);
//! assert!(reply.commit(3)?, "only the end can follow");
//! # Ok(())
//! # }
//! ```

mod arguments;
mod calls;
mod error;
mod format;
mod literal;
mod matcher;
mod regex;
mod schema;
mod vocabulary;

pub use error::GuidanceError;
pub use format::{CallFormat, Format, TextFormat};
pub use matcher::Matcher;
pub use vocabulary::{TokenTexts, Vocabulary};
