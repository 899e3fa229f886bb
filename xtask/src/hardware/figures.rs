//! Compares a model's speed with the figures recorded for this kind of GPU.

use std::{fs, process::Command};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{command::root, drill::Program};

/// The recorded figures.
const TABLE: &str = "docs/performance/figures.csv";
/// Prefill, decode, and decode behind a long context.
const TESTS: [&[&str]; 2] = [&["-p", "512", "-n", "128"], &["-p", "0", "-n", "128", "-d", "8192"]];

/// A recorded figure.
#[derive(Debug, Clone, PartialEq)]
struct Figure {
    gpu: String,
    /// Identifies the model, whatever its file is called.
    parameters: u64,
    test: String,
    tokens_per_second: f64,
    /// The share that a run may be slower.
    allowed: f64,
}

/// Benchmarks a model with default constants; fails if a test is slower than its recorded figure allows.
pub(super) fn compare(program: &Program, model: &str) -> Result<String> {
    let path = root().join(TABLE);
    let table = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let figures = parse(&table)?;
    let shown = json(program, &["show", model, "--json"])?;
    let parameters =
        shown["parameters"].as_u64().context("`show` gives no number of parameters")?;
    let mut text = String::from("| test | tokens/s | recorded | |\n| --- | --- | --- | --- |\n");
    let mut slower = Vec::new();
    for test in TESTS {
        let common = ["bench", model, "--json", "--no-agreement", "--no-tuning"];
        let measured = json(program, &[&common[..], test].concat())?;
        let gpu = measured["adapter"].as_str().unwrap_or_default();
        for test in measured["tests"].as_array().context("`bench` gives no tests")? {
            let name = test["test"].as_str().unwrap_or_default();
            let rate = test["tokens_per_second"].as_f64().context("`bench` gives no rate")?;
            let figure = figures.iter().find(|figure| {
                figure.gpu == gpu && figure.parameters == parameters && figure.test == name
            });
            let (recorded, verdict) = judge(rate, figure);
            text.push_str(&format!("| {name} | {rate:.1} | {recorded} | {verdict} |\n"));
            if verdict.starts_with("slower") {
                slower.push(name.to_owned());
            }
        }
    }
    ensure!(slower.is_empty(), "slower than recorded in {TABLE}: {}\n\n{text}", slower.join(", "));
    Ok(text)
}

/// The recorded figure as text, and how a rate compares with it.
fn judge(rate: f64, figure: Option<&Figure>) -> (String, String) {
    let Some(figure) = figure else { return ("none".into(), "not compared".into()) };
    let change = (rate / figure.tokens_per_second - 1.0) * 100.0;
    let limit = figure.tokens_per_second * (1.0 - figure.allowed);
    let word = if rate < limit { "slower than allowed" } else { "as recorded" };
    (format!("{:.1}", figure.tokens_per_second), format!("{word}, {change:+.1} %"))
}

/// The rows of the table.
fn parse(table: &str) -> Result<Vec<Figure>> {
    let row = |line: &str| -> Option<Figure> {
        let [gpu, _model, parameters, test, rate, allowed] =
            line.split(',').collect::<Vec<_>>().try_into().ok()?;
        Some(Figure {
            gpu: gpu.into(),
            parameters: parameters.parse().ok()?,
            test: test.into(),
            tokens_per_second: rate.parse().ok()?,
            allowed: allowed.parse().ok()?,
        })
    };
    let lines = table.lines().skip(1).filter(|line| !line.trim().is_empty());
    lines.map(|line| row(line).with_context(|| format!("{TABLE}: `{line}`"))).collect()
}

fn json(program: &Program, args: &[&str]) -> Result<Value> {
    let ended = Command::new(&program.path).args(args).output()?;
    let errors = String::from_utf8_lossy(&ended.stderr);
    ensure!(ended.status.success(), "`rullama {}`: {}: {errors}", args.join(" "), ended.status);
    Ok(serde_json::from_slice(&ended.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::{Figure, TABLE, judge, parse};
    use crate::command::root;

    #[test]
    fn slower_runs_fail_and_others_do_not() {
        let figure = Figure {
            gpu: "a GPU".into(),
            parameters: 1,
            test: "tg128".into(),
            tokens_per_second: 100.0,
            allowed: 0.02,
        };
        for (rate, word) in [(97.9, "slower"), (98.1, "as recorded"), (120.0, "as recorded")] {
            assert!(judge(rate, Some(&figure)).1.starts_with(word), "{rate}");
        }
        assert_eq!(judge(1.0, None).1, "not compared");
    }

    #[test]
    fn the_table_is_well_formed() {
        let table = std::fs::read_to_string(root().join(TABLE)).expect("the table");
        let figures = parse(&table).expect("rows");
        assert!(!figures.is_empty());
        for figure in &figures {
            let same = |other: &&Figure| {
                (&other.gpu, other.parameters, &other.test)
                    == (&figure.gpu, figure.parameters, &figure.test)
            };
            assert_eq!(figures.iter().filter(same).count(), 1, "{figure:?}");
            assert!((0.0..0.5).contains(&figure.allowed), "{figure:?}");
        }
        assert!(parse("head\na GPU,E2B,many,tg128,1,0\n").is_err());
    }
}
