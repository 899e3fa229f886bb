//! Sampling flags, and the layers they go over: the file's hints and the store's parameters.

use anyhow::{Context, Result, bail};
use clap::Args as Group;
use rullama_runtime::options::{OptionWarning, SamplingOptions};
use serde_json::{Map, Value, json};

use crate::output::note;

/// How tokens are chosen. What is not given comes from the model's parameters, else from its file, else from Gemma's own.
#[derive(Debug, Clone, Default, Group)]
#[command(next_help_heading = "Sampling")]
pub(super) struct SamplingArgs {
    /// Random seed; the same seed gives the same reply
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    seed: Option<i64>,
    /// Temperature; 0 always picks the most likely token
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    temperature: Option<f64>,
    /// Sample from the N most likely tokens; 0 is all
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    top_k: Option<i64>,
    /// Sample from the most likely tokens up to this cumulative probability
    #[arg(long, value_name = "X")]
    top_p: Option<f64>,
    /// Drop tokens less likely than this fraction of the most likely one
    #[arg(long, value_name = "X")]
    min_p: Option<f64>,
    /// Penalty for recent tokens; above 1 makes them less likely
    #[arg(long, value_name = "X")]
    repeat_penalty: Option<f64>,
    /// Number of recent tokens the penalties look at; -1 is all
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    repeat_last_n: Option<i64>,
    /// Subtracted from the logits of recent tokens
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    presence_penalty: Option<f64>,
    /// Subtracted from the logits of recent tokens, once per occurrence
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    frequency_penalty: Option<f64>,
    /// Maximum tokens to generate; -1 is no limit
    #[arg(long, short = 'n', value_name = "N", allow_negative_numbers = true)]
    num_predict: Option<i64>,
    /// Stop when this text is generated; may be repeated
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    stop: Vec<String>,
    /// Any other option by its Ollama or llama.cpp name, such as dry_multiplier=0.8
    #[arg(long = "option", value_name = "NAME=VALUE", value_parser = pair)]
    options: Vec<(String, Value)>,
}

impl SamplingArgs {
    /// The flags that were given.
    pub(super) fn layer(&self) -> Value {
        let flags = json!({
            "seed": self.seed,
            "temperature": self.temperature,
            "top_k": self.top_k,
            "top_p": self.top_p,
            "min_p": self.min_p,
            "repeat_penalty": self.repeat_penalty,
            "repeat_last_n": self.repeat_last_n,
            "presence_penalty": self.presence_penalty,
            "frequency_penalty": self.frequency_penalty,
            "num_predict": self.num_predict,
            "stop": if self.stop.is_empty() { Value::Null } else { json!(self.stop) },
        });
        let mut layer = match flags {
            Value::Object(flags) => flags,
            _ => Map::new(),
        };
        layer.extend(self.options.iter().cloned());
        layer.retain(|_, value| !value.is_null());
        Value::Object(layer)
    }

    /// Refuses names and values that no model takes, before one is loaded or a server is asked.
    pub(super) fn check(&self) -> Result<()> {
        if self.options.iter().any(|(name, _)| name == "num_ctx") {
            bail!("set the context with --ctx instead of --option num_ctx");
        }
        set(&mut SamplingOptions::default(), &self.layer())
    }
}

/// A model's options under these flags; says which of the model's own were ignored.
pub(super) fn layered(
    mut options: SamplingOptions,
    warnings: &[OptionWarning],
    flags: &SamplingArgs,
) -> Result<SamplingOptions> {
    warnings.iter().for_each(|warning| note(&warning.to_string()));
    set(&mut options, &flags.layer())?;
    Ok(options)
}

/// Lays options that a person gave over the others; unknown names are refused.
pub(super) fn set(options: &mut SamplingOptions, layer: &Value) -> Result<()> {
    let mut next = options.clone();
    match next.apply(layer)?.first() {
        None => {
            *options = next;
            Ok(())
        }
        Some(OptionWarning::Unknown { name }) => bail!("unknown option {name}"),
        Some(other) => bail!("{other}"),
    }
}

/// The context that `num_ctx` sets.
pub(super) fn context(value: &Value) -> Result<usize> {
    let tokens = value.as_u64().and_then(|tokens| usize::try_from(tokens).ok());
    tokens.context("num_ctx must be a number of tokens")
}

/// A value as people type it: JSON, or plain text.
pub(super) fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

fn pair(text: &str) -> Result<(String, Value), &'static str> {
    let (name, given) =
        text.split_once('=').ok_or("give a name and a value, such as xtc_probability=0.5")?;
    Ok((name.trim().into(), value(given.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_a_layer() {
        let flags = SamplingArgs {
            temperature: Some(0.5),
            stop: vec!["END".into()],
            options: vec![pair("top_n_sigma = 2").unwrap(), pair("top_k=7").unwrap()],
            ..SamplingArgs::default()
        };
        let mut options = SamplingOptions::default();
        set(&mut options, &flags.layer()).unwrap();
        assert_eq!((options.temperature, options.top_k, options.top_n_sigma), (0.5, 7, 2.0));
        assert_eq!((options.stop, options.top_p), (vec!["END".to_owned()], 0.95));
    }

    #[test]
    fn unknown_and_useless_options_are_refused() {
        let mut options = SamplingOptions::default();
        for layer in [json!({ "temprature": 1 }), json!({ "top_p": "x" }), json!({ "min_p": -1 })] {
            assert!(set(&mut options, &layer).is_err(), "{layer}");
        }
        assert_eq!(options, SamplingOptions::default());
        assert!(pair("novalue").is_err());
    }
}
