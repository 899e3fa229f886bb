//! Training: inspecting data, single steps, checkpoints, adapters.

use std::{cell::RefCell, rc::Rc};

use js_sys::{Function, Uint8Array};
use rullama_adapter::Adapter;
use rullama_train::{
    AdapterOptions, Checkpoint, Dataset, Event, Example, Run, RunOptions, Schedule, ScheduleShape,
    Settings,
    dataset::{BadLine, DataOptions, TextSpan, largest, preview},
    defaults, fresh,
};
use serde::Deserialize;
use serde_json::{Value, json};
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};

use crate::{
    adapters::{Library, facts},
    error::Failure,
    model::Model,
    options::parse,
    source::{BytesOf, ScriptSource},
};

/// Examples in a preview.
const MAX_PREVIEW: usize = 8;
/// Bad lines that are listed.
const MAX_BAD_LINES: usize = 100;

/// Training options under the client's names.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct TrainRequest {
    /// Id of the adapter to continue.
    init: Option<String>,
    rank: usize,
    alpha: Option<f32>,
    targets: Vec<String>,
    steps: Option<u32>,
    epochs: f64,
    learning_rate: f64,
    schedule: Form,
    warmup: u32,
    weight_decay: f32,
    clip: Option<f32>,
    batch: Option<usize>,
    dropout: f32,
    seed: u32,
    sequence_length: usize,
    pack: bool,
    raw: bool,
    eval_split: f64,
    eval_every: u32,
    early_stop: Option<u32>,
    memory: f64,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Form {
    Cosine,
    Linear,
    Constant,
}

impl Default for TrainRequest {
    fn default() -> Self {
        let settings = Settings::default();
        Self {
            init: None,
            rank: defaults::RANK,
            alpha: None,
            targets: Vec::new(),
            steps: None,
            epochs: defaults::EPOCHS,
            learning_rate: defaults::RATE,
            schedule: Form::Cosine,
            warmup: 0,
            weight_decay: settings.decay,
            clip: settings.clip,
            batch: None,
            dropout: settings.dropout,
            seed: 0,
            sequence_length: defaults::SEQUENCE,
            pack: false,
            raw: false,
            eval_split: 0.0,
            eval_every: defaults::EVALUATE,
            early_stop: None,
            memory: defaults::MEMORY as f64,
        }
    }
}

impl TrainRequest {
    fn data(&self) -> DataOptions {
        DataOptions { raw: self.raw, longest: Some(self.sequence_length) }
    }

    fn run(&self, examples: usize) -> RunOptions {
        let batch = self.batch.unwrap_or_else(|| defaults::batch(examples));
        let by_epochs = || defaults::steps(examples, self.epochs, batch);
        RunOptions {
            schedule: Schedule {
                rate: self.learning_rate,
                warmup: self.warmup,
                shape: match self.schedule {
                    Form::Cosine => ScheduleShape::Cosine,
                    Form::Linear => ScheduleShape::Linear,
                    Form::Constant => ScheduleShape::Constant,
                },
                steps: self.steps.unwrap_or_else(by_epochs),
            },
            settings: Settings {
                dropout: self.dropout,
                clip: self.clip,
                decay: self.weight_decay,
                memory: Some(self.memory as u64),
                ..Settings::default()
            },
            batch,
            pack: self.pack.then_some(self.sequence_length),
            tokens: None,
            seed: self.seed.into(),
            evaluate: self.eval_every,
            patience: self.early_stop,
        }
    }

    fn adapter(&self, model: &Model) -> Result<Rc<Adapter>, Failure> {
        if let Some(id) = &self.init {
            return model.adapters.initial(id);
        }
        let options = AdapterOptions {
            rank: self.rank,
            alpha: self.alpha.unwrap_or_else(|| defaults::alpha(self.rank)),
            targets: self.targets.clone(),
            seed: self.seed.into(),
        };
        Ok(Rc::new(fresh(&model.inner, &options).map_err(Failure::Training)?))
    }
}

/// A training run.
#[wasm_bindgen]
pub struct Training {
    /// `None` while a call uses it; the client queues calls.
    inner: RefCell<Option<Run>>,
    model: rullama_runtime::Model,
    adapters: Library,
}

#[wasm_bindgen]
impl Model {
    /// Inspects training data. Returns JSON: examples, bad lines, a preview, steps and bytes of GPU memory.
    #[wasm_bindgen(js_name = inspectTraining)]
    pub fn inspect_training(&self, text: &str, options: &str) -> Result<String, JsValue> {
        let request: TrainRequest = parse(options)?;
        let (data, bad) = Dataset::usable_lines(&self.inner, text, request.data());
        let mut report = self.described(&data, &bad)?;
        if data.examples.is_empty() {
            return Ok(report.to_string());
        }
        self.check_trains()?;
        // The preview is useful even if training with these options is impossible.
        if let Err(failure) = self.planned(&request, data, &mut report) {
            match failure {
                Failure::Training(error) => report["problem"] = json!(error.to_string()),
                failure => return Err(failure.into()),
            }
        }
        Ok(report.to_string())
    }

    /// Starts a run, or resumes it from a checkpoint.
    pub async fn train(
        &self,
        text: String,
        options: String,
        checkpoint: Option<BytesOf>,
    ) -> Result<Training, JsValue> {
        self.check_trains()?;
        let request: TrainRequest = parse(&options)?;
        let data = Dataset::of_lines(&self.inner, &text, request.data());
        let sides = data.and_then(|data| data.split(request.eval_split, request.seed.into()));
        let (train, aside) = sides.map_err(Failure::Training)?;
        let options = request.run(train.len());
        let adapter = request.adapter(self)?;
        let run = Run::new(&self.inner, &adapter, (train, aside), options).await;
        // The adapter's weights are on the device now.
        drop(adapter);
        let mut run = run.map_err(Failure::Training)?;
        if let Some(file) = checkpoint {
            let (source, thrown) = ScriptSource::new(file);
            let resume = async { run.resume(&Checkpoint::open(source).await?).await };
            resume.await.map_err(|error| thrown.or(Failure::Training(error)))?;
        }
        let (model, adapters) = (self.inner.clone(), self.adapters.clone());
        Ok(Training { inner: RefCell::new(Some(run)), model, adapters })
    }
}

impl Model {
    /// Adds the number of steps and the memory of a run to `report`.
    fn planned(
        &self,
        request: &TrainRequest,
        data: Dataset,
        report: &mut Value,
    ) -> Result<(), Failure> {
        let sides = data.split(request.eval_split, request.seed.into());
        let (train, aside) = sides.map_err(Failure::Training)?;
        let run = request.run(train.len());
        report["steps"] = json!(run.schedule.steps);
        report["batch"] = json!(run.batch);
        report["evaluated"] = json!(aside.len());
        let adapter = request.adapter(self)?;
        let need = Run::need(&self.inner, &adapter, (train, aside), &run);
        let need = need.map_err(Failure::Training)?;
        report["memory"] = json!({
            "model": need.model,
            "adapter": need.adapter,
            "work": need.work,
            "gpu": need.total(),
            "layersComputedTwice": need.recomputed,
        });
        Ok(())
    }

    fn described(&self, data: &Dataset, bad: &[BadLine]) -> Result<Value, Failure> {
        let all = |count: fn(&Example) -> usize| data.examples.iter().map(count).sum::<usize>();
        let mut shown = Vec::new();
        for example in data.examples.iter().take(MAX_PREVIEW) {
            let spans = preview(&self.inner, example).map_err(Failure::Training)?;
            let span = |it: &TextSpan| json!({ "text": it.text, "learned": it.learned });
            shown.push(json!({
                "tokens": example.ids.len(),
                "learned": example.targets(),
                "spans": spans.iter().map(span).collect::<Vec<_>>(),
            }));
        }
        let wrong = |bad: &BadLine| json!({ "line": bad.line, "message": bad.why.to_string() });
        Ok(json!({
            "examples": data.examples.len(),
            "tokens": all(|example| example.ids.len()),
            "learned": all(Example::targets),
            "longest": largest(&data.examples).0,
            "cut": data.cut,
            "dropped": data.dropped,
            "badLines": bad.iter().take(MAX_BAD_LINES).map(wrong).collect::<Vec<_>>(),
            "bad": bad.len(),
            "preview": shown,
        }))
    }
}

#[wasm_bindgen]
impl Training {
    /// Trains one step or evaluates; returns an event as JSON, or `None` after the end.
    pub async fn next(&self) -> Result<Option<String>, JsValue> {
        let mut run = self.take()?;
        let next = run.next().await;
        self.put(run);
        let event = next.map_err(Failure::Training)?;
        Ok(event.map(|event| event_json(event).to_string()))
    }

    /// Calls `each` with the chunks of a checkpoint file, from which a later run can resume.
    pub async fn checkpoint(&self, each: Function) -> Result<(), JsValue> {
        let run = self.take()?;
        let written = write_checkpoint(&run, &each).await;
        self.put(run);
        written
    }

    /// Progress as JSON: `{ step, steps, losses, evaluations }`.
    pub fn state(&self) -> Result<String, JsValue> {
        let run = self.take()?;
        let state = json!({
            "step": run.trainer().steps(),
            "steps": run.schedule().steps,
            "losses": run.losses(),
            "evaluations": run.evaluations(),
        });
        self.put(run);
        Ok(state.to_string())
    }

    /// Adds the current adapter to the model's adapters; returns a description as JSON.
    pub async fn keep(&self, id: String) -> Result<String, JsValue> {
        let run = self.take()?;
        let adapter = run.trainer().adapter().await;
        self.put(run);
        let adapter = adapter.map_err(Failure::Training)?;
        let facts = facts(&self.model, &adapter)?.to_string();
        self.adapters.put(&id, adapter);
        Ok(facts)
    }

    /// Bytes on the GPU in addition to the model's; 0 while a step runs.
    #[wasm_bindgen(js_name = gpuBytes)]
    pub fn gpu_bytes(&self) -> f64 {
        let all = self.inner.borrow().as_ref().map_or(0, |run| run.trainer().gpu_bytes());
        all.saturating_sub(self.model.gpu_bytes()) as f64
    }
}

impl Training {
    fn take(&self) -> Result<Run, Failure> {
        self.inner.borrow_mut().take().ok_or(Failure::Busy)
    }

    fn put(&self, run: Run) {
        *self.inner.borrow_mut() = Some(run);
    }
}

async fn write_checkpoint(run: &Run, each: &Function) -> Result<(), JsValue> {
    for number in 0.. {
        let piece = run.checkpoint_piece(number).await.map_err(Failure::Training)?;
        let Some(piece) = piece else { break };
        each.call1(&JsValue::NULL, &Uint8Array::from(&piece[..]))?;
    }
    Ok(())
}

fn event_json(event: Event) -> Value {
    match event {
        Event::Step(step) => json!({
            "type": "step",
            "step": step.step + 1,
            "loss": step.loss,
            "learningRate": step.rate,
            "tokens": step.tokens,
            "learned": step.targets,
        }),
        Event::Evaluated { step, loss, best } => {
            json!({ "type": "evaluated", "step": step, "loss": loss, "best": best })
        }
        Event::Done { step, loss, early } => {
            json!({ "type": "done", "step": step, "loss": loss, "early": early })
        }
    }
}
