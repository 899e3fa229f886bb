//! Similar names, to suggest for a name that is not found.

use crate::ModelName;

const MAX_SUGGESTIONS: usize = 5;

/// The known names most similar to `wanted`, best first.
pub(crate) fn similar(wanted: &ModelName, known: &[ModelName]) -> Vec<String> {
    let mut scored: Vec<_> = known
        .iter()
        .filter_map(|name| {
            let tags = edits(&wanted.tag().to_lowercase(), &name.tag().to_lowercase());
            Some((distance(wanted, name)?, tags, name.to_string()))
        })
        .collect();
    scored.sort();
    scored.dedup();
    scored.into_iter().take(MAX_SUGGESTIONS).map(|(_, _, name)| name).collect()
}

/// The distance between two names without their tags; `None` if they are too different to suggest.
fn distance(wanted: &ModelName, name: &ModelName) -> Option<usize> {
    let (a, b) = (wanted.without_tag().to_lowercase(), name.without_tag().to_lowercase());
    let (model, other) = (wanted.model().to_lowercase(), name.model().to_lowercase());
    let limit = 1 + a.len() / 4;
    if a.len().abs_diff(b.len()) <= limit {
        let distance = edits(&a, &b);
        if distance <= limit {
            return Some(distance);
        }
    }
    if model == other {
        Some(1) // the same model in another namespace
    } else if model.len().min(other.len()) > 2
        && (other.starts_with(&model) || model.starts_with(&other))
    {
        Some(2) // `qwen` for `qwen2.5-coder`
    } else {
        None
    }
}

/// Levenshtein distance. Names are ASCII.
fn edits(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let change = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{edits, similar};

    fn check(wanted: &str, known: &[&str], expected: &[&str]) {
        let known: Vec<_> = known.iter().map(|name| name.parse().unwrap()).collect();
        assert_eq!(similar(&wanted.parse().unwrap(), &known), expected, "{wanted}");
    }

    #[test]
    fn distances() {
        for (a, b, distance) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("abc", "abc", 0),
            ("kitten", "sitting", 3),
            ("ab", "ba", 2),
            ("gemma", "gemma4", 1),
        ] {
            assert_eq!(edits(a, b), distance, "{a} {b}");
        }
    }

    #[test]
    fn other_tags_of_the_same_model_come_first() {
        let known = ["gemma3:e2b", "gemma4:e4b", "gemma4:latest", "gemma4:e2b", "llama:e2c"];
        check("gemma4:e2c", &known, &["gemma4:e2b", "gemma4:e4b", "gemma4:latest", "gemma3:e2b"]);
    }

    #[test]
    fn typing_errors_and_partial_names() {
        check("gema4:e2b", &["gemma4:e2b", "mistral"], &["gemma4:e2b"]);
        check("gema4", &["gemma4:e2b"], &["gemma4:e2b"]);
        check("GEMMA:E2B", &["gemma4:e2b"], &["gemma4:e2b"]);
        let elsewhere = ["alice/gemma4:v1", "hf.co/org/gemma4:x"];
        check("gemma4", &elsewhere, &elsewhere);
        check("qwen", &["qwen2.5-coder:7b"], &["qwen2.5-coder:7b"]);
        check("gemma4-it", &["gemma4"], &["gemma4:latest"]);
        check("phi", &["llama", "mistral", "ph", "qw"], &["ph:latest"]);
        check("mistral", &["m", "mi", "llama"], &[]);
        check("x", &[], &[]);
    }

    #[test]
    fn at_most_five_are_suggested() {
        let known: Vec<String> = (0..9).map(|i| format!("m:{i}")).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        check("m:x", &known, &["m:0", "m:1", "m:2", "m:3", "m:4"]);
    }
}
