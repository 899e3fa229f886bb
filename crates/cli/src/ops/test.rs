//! `rullama ops test`

use std::time::Instant;

use anyhow::{Result, bail};
use rullama_engine::suite::{Case, Verdict, run};
use serde_json::{Value, json};

use super::OpsArgs;
use crate::output::{print, print_json, table};

/// The result of one case on one GPU at one feature level.
struct Outcome<'a> {
    gpu: String,
    level: &'static str,
    case: &'a Case,
    verdict: Verdict,
    seconds: f64,
}

pub(super) async fn test(args: &OpsArgs) -> Result<()> {
    let cases = args.cases(|case| !case.bench)?;
    let mut outcomes = Vec::new();
    for gpu in args.gpus()? {
        for (level, device) in args.levels(&gpu)? {
            for case in &cases {
                let start = Instant::now();
                let verdict = run(case, &device).await;
                let seconds = start.elapsed().as_secs_f64();
                outcomes.push(Outcome { gpu: gpu.name().into(), level, case, verdict, seconds });
            }
        }
    }
    if args.json {
        print_json(&outcomes.iter().map(as_json).collect::<Vec<_>>())?;
    } else {
        print(&as_table(&outcomes))?;
    }
    let failed = outcomes.iter().filter(|o| matches!(o.verdict, Verdict::Failed(_))).count();
    if failed > 0 {
        bail!("{failed} of {} cases failed", outcomes.len());
    }
    Ok(())
}

fn words(verdict: &Verdict) -> (&'static str, String) {
    match verdict {
        Verdict::Passed => ("passed", String::new()),
        Verdict::Skipped { workgroups } => {
            ("skipped", format!("{workgroups} workgroups are too many for this device"))
        }
        Verdict::Failed(failure) => ("failed", failure.to_string()),
    }
}

fn as_json(outcome: &Outcome<'_>) -> Value {
    let (verdict, message) = words(&outcome.verdict);
    json!({
        "gpu": outcome.gpu,
        "feature_level": outcome.level,
        "op": outcome.case.op,
        "case": outcome.case.name,
        "verdict": verdict,
        "message": message,
        "seconds": outcome.seconds,
    })
}

/// A line per operation and feature level, then every case that did not pass.
fn as_table(outcomes: &[Outcome<'_>]) -> String {
    let mut rows =
        vec![["OPERATION", "GPU", "LEVEL", "PASSED", "SECONDS"].map(String::from).to_vec()];
    let same = |a: &Outcome<'_>, b: &Outcome<'_>| {
        (a.case.op, a.level, &a.gpu) == (b.case.op, b.level, &b.gpu)
    };
    for group in outcomes.chunk_by(same) {
        let passed = group.iter().filter(|o| matches!(o.verdict, Verdict::Passed)).count();
        let seconds: f64 = group.iter().map(|outcome| outcome.seconds).sum();
        rows.push(vec![
            group[0].case.op.into(),
            group[0].gpu.clone(),
            group[0].level.into(),
            format!("{passed} of {}", group.len()),
            format!("{seconds:.2}"),
        ]);
    }
    let mut text = table(&rows);
    for outcome in outcomes.iter().filter(|o| !matches!(o.verdict, Verdict::Passed)) {
        let (verdict, message) = words(&outcome.verdict);
        let Outcome { gpu, level, case, .. } = outcome;
        text.push_str(&format!(
            "{verdict}: {} {} on {gpu} ({level}): {message}\n",
            case.op, case.name
        ));
    }
    text
}
