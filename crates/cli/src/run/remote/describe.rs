//! What `/show` shows of a conversation with a server, as far as the server tells.

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::{Remote, Topic};
use crate::output::{bytes, safe, safe_lines, table};

impl Remote {
    pub(super) fn describe(&self, topic: Topic) -> Result<String> {
        let shown = self.client.post("/api/show", &json!({ "model": self.model }))?;
        let text = |name: &str| shown[name].as_str().unwrap_or_default();
        Ok(match topic {
            Topic::Info => self.info(&shown),
            Topic::Parameters => parameters(text("parameters"), &self.options),
            Topic::System => {
                match self.system.as_deref().unwrap_or_else(|| text("system")).trim_end() {
                    "" => "No system message.\n".into(),
                    system => safe_lines(system) + "\n",
                }
            }
            Topic::Template => safe_lines(text("template").trim_end()) + "\n",
        })
    }

    fn info(&self, shown: &Value) -> String {
        let fact = |key: &str| {
            let found = shown["model_info"].as_object().into_iter().flatten();
            found.filter(|(name, _)| name.ends_with(key)).find_map(|(_, value)| value.as_u64())
        };
        let detail = |name: &str| shown["details"][name].as_str().unwrap_or_default();
        let loaded = self.loaded().unwrap_or_default();
        let context = match self.options.get("num_ctx").or(loaded.get("context_length")) {
            Some(tokens) => format!("{tokens} tokens"),
            None => "unknown until the model is loaded".into(),
        };
        let rows = [
            ("model", Some(self.model.clone())),
            ("server", Some(self.client.base().to_owned())),
            ("architecture", Some(detail("family").to_owned())),
            ("parameters", Some(detail("parameter_size").to_owned())),
            ("quantization", Some(detail("quantization_level").to_owned())),
            ("layers", fact(".block_count").map(|count| count.to_string())),
            ("GPU memory", loaded.get("size_vram").and_then(Value::as_u64).map(bytes)),
            ("context", Some(context)),
            ("trained for", fact(".context_length").map(|tokens| format!("{tokens} tokens"))),
            ("messages", Some(self.messages.len().to_string())),
        ];
        let known = rows.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let known = known.filter(|(_, value)| !value.is_empty());
        table(&known.map(|(name, value)| vec![name.into(), safe(&value)]).collect::<Vec<_>>())
    }

    /// What the server tells of the model while it is in memory.
    fn loaded(&self) -> Option<Map<String, Value>> {
        let listed = self.client.get("/api/ps").ok()?;
        let is_ours = |one: &&Value| {
            let name = one["name"].as_str().unwrap_or_default();
            let bare = name.strip_suffix(":latest").unwrap_or(name);
            [name, bare].iter().any(|name| name.eq_ignore_ascii_case(&self.model))
        };
        listed["models"].as_array()?.iter().find(is_ours)?.as_object().cloned()
    }
}

/// The model's parameters under those of this conversation; the rest is the server's defaults.
fn parameters(of_model: &str, given: &Map<String, Value>) -> String {
    let line = |line: &str| {
        let (name, value) = line.split_once(char::is_whitespace)?;
        Some((name.to_owned(), value.trim().to_owned()))
    };
    let is_own = |(name, _): &(String, String)| !given.contains_key(name);
    let own = of_model.lines().filter_map(line).filter(is_own);
    let given = given.iter().map(|(name, value)| (name.clone(), value.to_string()));
    let mut rows: Vec<Vec<String>> =
        own.chain(given).map(|(name, value)| vec![safe(&name), safe(&value)]).collect();
    rows.sort();
    if rows.is_empty() { "The server's defaults.\n".into() } else { table(&rows) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_the_chat_replace_the_models() {
        let Value::Object(given) = json!({ "temperature": 0.5, "seed": 7 }) else { return };
        let own = "temperature                    1\nstop                           \"a\"\nstop                           \"b\"";
        let shown = parameters(own, &given);
        let rows: Vec<Vec<&str>> =
            shown.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(
            rows,
            [["seed", "7"], ["stop", "\"a\""], ["stop", "\"b\""], ["temperature", "0.5"]]
        );
        assert_eq!(parameters("", &Map::new()), "The server's defaults.\n");
    }
}
