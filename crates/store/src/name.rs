//! Model names: `[scheme://][host/][namespace/]model[:tag]`.

#[cfg(test)]
mod tests;

use std::{fmt, path::PathBuf, str::FromStr};

use crate::StoreError;

const HOST: &str = "registry.ollama.ai";
const NAMESPACE: &str = "library";
const TAG: &str = "latest";

/// The name of a model, complete and valid: none of its parts can be empty, hidden, or lead to another folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModelName {
    scheme: Option<String>,
    host: String,
    namespace: String,
    model: String,
    tag: String,
}

impl ModelName {
    /// The protocol in the name; without one, `https` is used.
    pub fn scheme(&self) -> Option<&str> {
        self.scheme.as_deref()
    }

    /// The registry, possibly with a port.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The user or organisation.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The model.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The variant.
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// All parts, defaults included.
    pub fn full(&self) -> String {
        let Self { host, namespace, model, tag, .. } = self;
        match &self.scheme {
            Some(scheme) => format!("{scheme}://{host}/{namespace}/{model}:{tag}"),
            None => format!("{host}/{namespace}/{model}:{tag}"),
        }
    }

    /// The manifest's path below the folder `manifests`.
    pub fn manifest_path(&self) -> PathBuf {
        self.parts().iter().collect()
    }

    /// The four components of the manifest's path.
    pub(crate) fn parts(&self) -> [&str; 4] {
        [&self.host, &self.namespace, &self.model, &self.tag]
    }

    /// The name whose manifest has these four path components, if it is valid.
    pub(crate) fn from_parts([host, namespace, model, tag]: [&str; 4]) -> Option<Self> {
        let valid = check(NamePart::Host, host).is_ok()
            && check(NamePart::Namespace, namespace).is_ok()
            && check(NamePart::Model, model).is_ok()
            && check(NamePart::Tag, tag).is_ok();
        valid.then(|| Self {
            scheme: None,
            host: host.into(),
            namespace: namespace.into(),
            model: model.into(),
            tag: tag.into(),
        })
    }

    /// The short form without its tag.
    pub(crate) fn without_tag(&self) -> String {
        let Self { host, namespace, model, .. } = self;
        if !host.eq_ignore_ascii_case(HOST) {
            format!("{host}/{namespace}/{model}")
        } else if !namespace.eq_ignore_ascii_case(NAMESPACE) {
            format!("{namespace}/{model}")
        } else {
            model.clone()
        }
    }
}

/// The short form, as Ollama lists it: a default host and namespace are left out, the tag never.
impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.without_tag(), self.tag)
    }
}

impl FromStr for ModelName {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let part = |part: NamePart, value: Option<&str>, default: &str| match value {
            None => Ok(default.to_owned()),
            Some(value) => check(part, value)
                .map(|()| value.to_owned())
                .map_err(|rule| StoreError::BadName { name: text.into(), part, rule }),
        };
        // A colon before the last slash belongs to a port.
        let (path, tag) = match (text.rfind(':'), text.rfind('/')) {
            (Some(colon), slash) if slash < Some(colon) => {
                (&text[..colon], Some(&text[colon + 1..]))
            }
            _ => (text, None),
        };
        let (rest, model) = split_last(path);
        let (rest, namespace) = rest.map_or((None, None), |rest| {
            let (rest, namespace) = split_last(rest);
            (rest, Some(namespace))
        });
        let (scheme, host) = match rest.map(|rest| (rest, rest.split_once("://"))) {
            None => (None, None),
            Some((_, Some((scheme, host)))) => (Some(scheme), Some(host)),
            Some((rest, None)) => (None, Some(rest)),
        };
        Ok(Self {
            scheme: scheme.map(|s| part(NamePart::Scheme, Some(s), "")).transpose()?,
            host: part(NamePart::Host, host, HOST)?,
            namespace: part(NamePart::Namespace, namespace, NAMESPACE)?,
            model: part(NamePart::Model, Some(model), "")?,
            tag: part(NamePart::Tag, tag, TAG)?,
        })
    }
}

/// The text before the last slash, if there is one, and the text after it.
fn split_last(text: &str) -> (Option<&str>, &str) {
    text.rsplit_once('/').map_or((None, text), |(rest, last)| (Some(rest), last))
}

/// A part of a model name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NamePart {
    /// The protocol, before `://`.
    Scheme,
    /// The registry.
    Host,
    /// The user or organisation.
    Namespace,
    /// The model.
    Model,
    /// The variant, after the colon.
    Tag,
}

impl NamePart {
    /// The characters allowed after the first one, in addition to letters, digits and `_`, and the maximum length.
    fn limits(self) -> (&'static [char], usize) {
        match self {
            Self::Scheme => (&['+', '-', '.'], 80),
            Self::Host => (&['-', '.', ':'], 350),
            Self::Namespace => (&['-'], 80),
            Self::Model | Self::Tag => (&['-', '.'], 80),
        }
    }
}

impl fmt::Display for NamePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scheme => "scheme",
            Self::Host => "host",
            Self::Namespace => "namespace",
            Self::Model => "model",
            Self::Tag => "tag",
        })
    }
}

/// The rule that a part of a name breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameRule {
    /// It has no characters.
    #[error("is empty")]
    Empty,
    /// It has too many.
    #[error("has {len} characters, more than {max}")]
    TooLong {
        /// How many.
        len: usize,
        /// The limit.
        max: usize,
    },
    /// It starts with something other than a letter, a digit or `_`.
    #[error("starts with {0:?}; it must start with a letter, a digit or `_`")]
    Start(char),
    /// A character that is not allowed in this part.
    #[error("contains {0:?}, which is not allowed")]
    Character(char),
}

fn check(part: NamePart, value: &str) -> Result<(), NameRule> {
    let (others, max) = part.limits();
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut chars = value.chars();
    match chars.next() {
        None => return Err(NameRule::Empty),
        Some(first) if !plain(first) => return Err(NameRule::Start(first)),
        Some(_) => {}
    }
    if let Some(wrong) = chars.find(|&c| !plain(c) && !others.contains(&c)) {
        return Err(NameRule::Character(wrong));
    }
    if value.len() > max {
        return Err(NameRule::TooLong { len: value.len(), max });
    }
    Ok(())
}
