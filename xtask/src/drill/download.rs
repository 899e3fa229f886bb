//! Downloads into a browser's storage: the browser is killed, pages crash or close, the quota runs out.

use std::{collections::BTreeMap, process::Command};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;
use tempfile::TempDir;

use super::{Program, Row};
use crate::command::root;

/// Attempts of the other drills per repetition of these tests, which are slow because each starts a browser.
const RUNS_PER_PASS: usize = 50;
const SPECS: [&str; 2] = ["storage/killed", "storage/resume"];

pub(super) fn drill(_: &Program, runs: usize, done: &mut dyn FnMut(Row)) -> Result<()> {
    let web = root().join("web");
    let needed = [
        ("node_modules/.package-lock.json", "packages"),
        ("client/src/wasm/rullama_bg.wasm", "wasm"),
    ];
    for (file, what) in needed {
        if !web.join(file).exists() {
            let why = format!("no {what} in web/; `cargo xtask web` sets it up");
            done(Row::not_tried("downloads in a browser", &why));
            return Ok(());
        }
    }
    for row in rows(&playwright(runs.div_ceil(RUNS_PER_PASS).max(1))?)? {
        done(row);
    }
    Ok(())
}

/// Runs the end-to-end tests `passes` times; returns Playwright's JSON report, including failed tests.
fn playwright(passes: usize) -> Result<Value> {
    let folder = TempDir::new()?;
    let file = folder.path().join("report.json");
    let out = Command::new("npx")
        .args(["playwright", "test", "-c", "e2e"])
        .args(SPECS)
        .args(["--reporter=json".into(), format!("--repeat-each={passes}")])
        // In a file: on standard output the report would be mixed with output of the tests' setup.
        .env("PLAYWRIGHT_JSON_OUTPUT_FILE", &file)
        .env("FORCE_COLOR", "0")
        .current_dir(root().join("web"))
        .output()
        .context("`npx` could not be started; is Node.js installed?")?;
    let text = std::fs::read(&file).with_context(|| {
        format!("Playwright wrote no report: {}", String::from_utf8_lossy(&out.stderr).trim())
    })?;
    serde_json::from_slice(&text).context("Playwright's report")
}

/// A row for each test of a report, by title.
fn rows(report: &Value) -> Result<Vec<Row>> {
    let mut attempts = BTreeMap::new();
    collect(report, &mut attempts);
    if attempts.is_empty() {
        // For example a spec that does not compile.
        bail!("no test ran: {}", first_line(&report["errors"][0]));
    }
    Ok(attempts.into_iter().map(|(title, attempts)| Row::of(title, attempts)).collect())
}

/// Adds the outcomes of a suite and its nested suites.
fn collect(suite: &Value, attempts: &mut BTreeMap<String, Vec<Result<()>>>) {
    for spec in list(&suite["specs"]) {
        let title = spec["title"].as_str().unwrap_or("a test without a title");
        let outcomes = attempts.entry(title.into()).or_default();
        outcomes.extend(list(&spec["tests"]).iter().map(outcome));
    }
    for inner in list(&suite["suites"]) {
        collect(inner, attempts);
    }
}

/// The outcome of one test.
fn outcome(test: &Value) -> Result<()> {
    match test["status"].as_str() {
        Some("expected") => Ok(()),
        status => {
            let error = list(&test["results"]).iter().find_map(|result| result["errors"].get(0));
            Err(match error {
                Some(error) => anyhow!("{}", first_line(error)),
                None => anyhow!("Playwright calls it {}", status.unwrap_or("nothing")),
            })
        }
    }
}

fn first_line(error: &Value) -> &str {
    error["message"].as_str().and_then(|text| text.lines().next()).unwrap_or("unknown error")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::rows;

    #[test]
    fn rows_of_a_report() {
        let passed = json!({ "status": "expected", "results": [{ "errors": [] }] });
        let error = json!({ "message": "Error: too much\n\nExpected: 1" });
        let failed = json!({ "status": "unexpected", "results": [{ "errors": [error] }] });
        let killed = json!({ "title": "kill -9", "tests": [passed, failed] });
        let crash = json!({ "title": "a crash", "tests": [passed] });
        let report = json!({ "suites": [{ "specs": [killed], "suites": [{ "specs": [crash] }] }] });
        let rows = rows(&report).unwrap();
        let seen: Vec<_> = rows
            .iter()
            .map(|row| (row.what.as_str(), row.tried, row.survived, row.note.as_str()))
            .collect();
        assert_eq!(seen, [("a crash", 1, 1, ""), ("kill -9", 2, 1, "Error: too much")]);
    }

    #[test]
    fn a_report_without_tests_is_an_error() {
        let report = json!({ "suites": [], "errors": [{ "message": "no tests found\nat x" }] });
        assert_eq!(rows(&report).unwrap_err().to_string(), "no test ran: no tests found");
    }
}
