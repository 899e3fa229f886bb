//! A reply under way: its events as JSON for the script, its times, and how it ended.

use js_sys::Function;
use rullama_runtime::{
    Model, RuntimeError,
    generate::{Done, Event, Generation},
};
use serde_json::{Value, json};
use wasm_bindgen::JsValue;

use crate::{
    error::Failure,
    events::{self, Times},
    session::now,
    turns::Turns,
};

/// A reply that a script listens to.
pub(crate) struct Reply {
    pub(crate) script: Script,
    model: Model,
    turns: Turns,
    /// Tokens of the prompt, and those that were told to be in the cache.
    prompt: usize,
    prefilled: usize,
    pub(crate) times: Times,
    pub(crate) done: Option<Done>,
    failure: Option<Failure>,
    /// Tokens that were computed in one pass with those of other replies.
    pub(crate) batched_tokens: usize,
}

impl Reply {
    pub(crate) fn new(
        model: &Model,
        script: Script,
        prompt: usize,
        start: f64,
        turns: Turns,
    ) -> Self {
        Self {
            script,
            model: model.clone(),
            turns,
            prompt,
            prefilled: 0,
            times: Times { start, first: None, end: start },
            done: None,
            failure: None,
            batched_tokens: 0,
        }
    }

    /// Whether it has ended or failed.
    pub(crate) fn is_over(&self) -> bool {
        self.done.is_some() || self.failure.is_some()
    }

    /// Whether a token has been generated.
    pub(crate) fn has_begun(&self) -> bool {
        self.times.first.is_some()
    }

    /// The error of the script, or of the reply.
    pub(crate) fn outcome(self) -> Result<(), Failure> {
        self.script.outcome()?;
        self.failure.map_or(Ok(()), Err)
    }

    pub(crate) fn fail(&mut self, failure: Failure) {
        self.failure = Some(failure);
    }

    pub(crate) fn fail_with(&mut self, error: &RuntimeError) {
        self.fail(Failure::shared(error));
    }

    /// Reports how much of the prompt is in the cache, if that has changed; true if the reply should end.
    pub(crate) fn prefilled(&mut self, done: usize) -> bool {
        if done == self.prefilled {
            return false;
        }
        self.prefilled = done;
        self.script.emit(&json!({ "type": "prefill", "done": done, "total": self.prompt }))
    }

    /// A token was generated.
    pub(crate) fn token(&mut self) {
        self.times.end = now();
        self.times.first.get_or_insert(self.times.end);
    }

    /// Reports an event, or keeps the last one; true if the reply should end.
    pub(crate) fn event(&mut self, event: Event) -> bool {
        let Ok(tokenizer) = self.model.tokenizer() else { return true };
        match events::event(event, tokenizer) {
            Ok(event) => self.script.emit(&event),
            Err(done) => {
                self.done = Some(done);
                false
            }
        }
    }

    /// Generates alone until the end, or until `wanted`: others wait to be generated together with this reply.
    pub(crate) async fn generate(
        &mut self,
        generation: &mut Generation<'_>,
        wanted: &dyn Fn() -> bool,
    ) {
        if let Err(error) = self.try_generate(generation, wanted).await {
            self.fail(error.into());
        }
    }

    async fn try_generate(
        &mut self,
        generation: &mut Generation<'_>,
        wanted: &dyn Fn() -> bool,
    ) -> Result<(), RuntimeError> {
        let takes_turns = self.turns.are_needed();
        let mut ends = false;
        while !generation
            .prefill_while(&mut |done| {
                ends = self.prefilled(done);
                !ends && !takes_turns && !wanted()
            })
            .await?
        {
            self.turns.give().await;
            if ends || self.script.ends() {
                generation.cancel();
                break;
            }
            if wanted() {
                return Ok(());
            }
        }
        loop {
            if takes_turns {
                self.turns.give().await;
                if self.script.ends() {
                    generation.cancel();
                }
            }
            let more = generation.step().await?;
            self.token();
            while let Some(event) = generation.ready() {
                if self.event(event) {
                    generation.cancel();
                }
            }
            if !more || self.is_over() || wanted() {
                return Ok(());
            }
        }
    }
}

/// A script's callback, and the error it threw.
pub(crate) struct Script {
    each: Function,
    thrown: Option<JsValue>,
}

impl Script {
    pub(crate) fn new(each: Function) -> Self {
        Self { each, thrown: None }
    }

    /// The error the script threw, if any.
    pub(crate) fn outcome(&self) -> Result<(), Failure> {
        self.thrown.clone().map_or(Ok(()), |error| Err(Failure::Script(error)))
    }

    /// Reports an event; returns true if generation should end.
    pub(crate) fn emit(&mut self, event: &Value) -> bool {
        self.call(&event.to_string())
    }

    /// Whether generation should end, while there is nothing to report: an empty text asks for it.
    pub(crate) fn ends(&mut self) -> bool {
        self.call("")
    }

    fn call(&mut self, event: &str) -> bool {
        if self.thrown.is_some() {
            return true;
        }
        match self.each.call1(&JsValue::NULL, &event.into()) {
            Ok(stop) => stop.is_truthy(),
            Err(error) => {
                self.thrown = Some(error);
                true
            }
        }
    }
}
