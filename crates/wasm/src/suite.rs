//! The op suite in a page.

use rullama_engine::{
    gpu::Gpu,
    suite::{Case, Verdict, cases, feature_levels, run},
};
use serde_json::json;
use wasm_bindgen::{JsError, JsValue, prelude::wasm_bindgen};

use crate::device::Device;

/// The cases of all operations, and the feature levels this device can emulate.
#[wasm_bindgen]
pub struct OpSuite {
    gpu: Gpu,
    levels: Vec<(&'static str, Gpu)>,
    cases: Vec<Case>,
}

#[wasm_bindgen]
impl OpSuite {
    /// The suite on a device.
    #[wasm_bindgen(constructor)]
    pub fn new(device: &Device) -> Result<Self, JsValue> {
        let gpu = device.gpu("the check of kernels")?.clone();
        let cases = cases().into_iter().filter(|case| !case.bench).collect();
        Ok(Self { levels: feature_levels(&gpu), gpu, cases })
    }

    /// `{ adapter, facts, levels: [name], cases: [{ op, name }] }` as JSON.
    pub fn describe(&self) -> String {
        let cases: Vec<_> =
            self.cases.iter().map(|case| json!({ "op": case.op, "name": case.name })).collect();
        let levels: Vec<&str> = self.levels.iter().map(|(name, _)| *name).collect();
        let facts = format!("{:?}", self.gpu.facts());
        json!({ "adapter": self.gpu.name(), "facts": facts, "levels": levels, "cases": cases })
            .to_string()
    }

    /// Runs one case at one feature level, both by number: `{ verdict: "passed" | "skipped" | "failed", message }` as JSON.
    pub async fn run(&self, case: usize, level: usize) -> Result<String, JsError> {
        let (case, level) = (self.cases.get(case), self.levels.get(level));
        let (Some(case), Some((_, gpu))) = (case, level) else {
            return Err(JsError::new("no such case or feature level"));
        };
        let (verdict, message) = match run(case, gpu).await {
            Verdict::Passed => ("passed", String::new()),
            Verdict::Skipped { workgroups } => ("skipped", format!("{workgroups} workgroups")),
            Verdict::Failed(failure) => ("failed", failure.to_string()),
        };
        Ok(json!({ "verdict": verdict, "message": message }).to_string())
    }

    /// Labels of the pipelines created so far, as JSON.
    pub fn pipelines(&self) -> String {
        json!(self.gpu.pipeline_labels()).to_string()
    }
}
