//! The op suite for a page.

use rullama_engine::{
    gpu::{DeviceFacts, Gpu},
    suite::{Case, Verdict, cases, plays, run},
};
use serde_json::json;
use wasm_bindgen::{JsError, prelude::wasm_bindgen};

/// The cases of all operations and the roles this browser's device can play.
#[wasm_bindgen]
pub struct OpSuite {
    gpu: Gpu,
    plays: Vec<(&'static str, Gpu)>,
    cases: Vec<Case>,
}

#[wasm_bindgen]
impl OpSuite {
    /// Opens the browser's device. The page says how wide subgroups are, since wgpu does not ask browsers for them; zeros mean
    /// that there are none.
    pub async fn open(subgroup_min: u32, subgroup_max: u32) -> Result<Self, JsError> {
        let gpu = Gpu::open().await?;
        let subgroups = (subgroup_min > 0).then_some((subgroup_min, subgroup_max));
        let gpu = gpu.playing(DeviceFacts { subgroups, ..gpu.facts().clone() });
        let cases = cases().into_iter().filter(|case| !case.bench).collect();
        Ok(Self { plays: plays(&gpu), gpu, cases })
    }

    /// `{ adapter, facts, plays: [name], cases: [{ op, name }] }` as JSON.
    pub fn describe(&self) -> String {
        let cases: Vec<_> =
            self.cases.iter().map(|case| json!({ "op": case.op, "name": case.name })).collect();
        let plays: Vec<&str> = self.plays.iter().map(|(name, _)| *name).collect();
        let facts = format!("{:?}", self.gpu.facts());
        json!({ "adapter": self.gpu.name(), "facts": facts, "plays": plays, "cases": cases })
            .to_string()
    }

    /// Runs one case in one role, both by number: `{ verdict: "passed" | "skipped" | "failed", message }` as JSON.
    pub async fn run(&self, case: usize, play: usize) -> Result<String, JsError> {
        let (case, play) = (self.cases.get(case), self.plays.get(play));
        let (Some(case), Some((_, gpu))) = (case, play) else {
            return Err(JsError::new("there is no such case or role"));
        };
        let (verdict, message) = match run(case, gpu).await {
            Verdict::Passed => ("passed", String::new()),
            Verdict::Skipped { workgroups } => ("skipped", format!("{workgroups} workgroups")),
            Verdict::Failed(failure) => ("failed", failure.to_string()),
        };
        Ok(json!({ "verdict": verdict, "message": message }).to_string())
    }

    /// Labels of the pipelines made so far, as JSON: which variants ran.
    pub fn pipelines(&self) -> String {
        json!(self.gpu.pipeline_labels()).to_string()
    }
}
