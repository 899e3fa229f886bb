//! Model names: `[host/][namespace/]model[:tag]`, case-insensitive.

use crate::ApiError;

const HOST: &str = "registry.ollama.ai";
const NAMESPACE: &str = "library";
const TAG: &str = "latest";

/// The shortest form of a name, always with a tag, for responses: without Ollama's default host and the namespace
/// `library`.
///
/// ```
/// use rullama_api::short_name;
///
/// assert_eq!(short_name("registry.ollama.ai/library/gemma4")?, "gemma4:latest");
/// assert_eq!(short_name("hf.co/user/repo:Q4_K_M")?, "hf.co/user/repo:Q4_K_M");
/// assert!(short_name("../etc").is_err());
/// # Ok::<(), rullama_api::ApiError>(())
/// ```
pub fn short_name(name: &str) -> Result<String, ApiError> {
    let bare = name.split_once("://").map_or(name, |(_, rest)| rest);
    // A colon before the last slash precedes a port.
    let (path, tag) = match (bare.rfind(':'), bare.rfind('/')) {
        (Some(colon), slash) if slash < Some(colon) => (&bare[..colon], &bare[colon + 1..]),
        _ => (bare, TAG),
    };
    let parts: Vec<&str> = path.split('/').collect();
    let (host, namespace, model) = match parts[..] {
        [model] => (HOST, NAMESPACE, model),
        [namespace, model] => (HOST, namespace, model),
        [host, namespace, model] => (host, namespace, model),
        _ => return Err(ApiError::InvalidModelName),
    };
    let valid = is_part(host, 350, |c| c == ':')
        && is_part(namespace, 80, |_| false)
        && is_part(model, 80, |_| false)
        && is_part(tag, 80, |_| false);
    if !valid {
        return Err(ApiError::InvalidModelName);
    }
    Ok(if !host.eq_ignore_ascii_case(HOST) {
        format!("{host}/{namespace}/{model}:{tag}")
    } else if !namespace.eq_ignore_ascii_case(NAMESPACE) {
        format!("{namespace}/{model}:{tag}")
    } else {
        format!("{model}:{tag}")
    })
}

/// Letters, digits and `_ - .`; the first is neither a dash nor a dot.
fn is_part(text: &str, longest: usize, also: impl Fn(char) -> bool) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') || also(c);
    text.len() <= longest
        && text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && text.chars().all(is_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (name, short) in [
            ("gemma4", Some("gemma4:latest")),
            ("gemma4:e2b", Some("gemma4:e2b")),
            ("library/gemma4:e2b", Some("gemma4:e2b")),
            ("Registry.Ollama.AI/Library/gemma4:e2b", Some("gemma4:e2b")),
            ("me/mine", Some("me/mine:latest")),
            ("localhost:5000/me/mine:x", Some("localhost:5000/me/mine:x")),
            ("http://localhost:5000/me/mine", Some("localhost:5000/me/mine:latest")),
            ("", None),
            (":x", None),
            ("a:", None),
            ("a/", None),
            ("a/b/c/d", None),
            ("..", None),
            ("a b", None),
            ("é", None),
        ] {
            assert_eq!(short_name(name).ok().as_deref(), short, "{name:?}");
        }
    }
}
