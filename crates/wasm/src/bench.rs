//! Measures the speed of prefill and decode.

use js_sys::Function;
use rullama_runtime::session::DeviceSampling;
use serde::Deserialize;
use serde_json::json;
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};

use crate::{
    error::Failure,
    options::parse,
    session::{Session, now},
    turns::Turns,
};

/// Number of tokens of the prompt, of the reply, and of the context before both.
#[derive(Deserialize)]
struct Request {
    prompt: usize,
    answer: usize,
    depth: usize,
}

#[wasm_bindgen]
impl Session {
    /// Measures `{ prompt, answer, depth }` once, without a warm-up. The measurement ends if `stop`, which is called now and
    /// then, returns true. Returns JSON.
    pub async fn bench(&self, request: String, stop: Function) -> Result<String, JsValue> {
        let mut session = self.take()?;
        let outcome = measure(&mut session, &request, &stop, &self.turns).await;
        self.put(session);
        Ok(outcome?)
    }
}

async fn measure(
    session: &mut rullama_runtime::Session,
    request: &str,
    stop: &Function,
    turns: &Turns,
) -> Result<String, Failure> {
    let Request { prompt, answer, depth } = parse(request)?;
    let stopped = || stop.call0(&JsValue::NULL).is_ok_and(|stop| stop.is_truthy());
    let vocabulary = session.model().config().vocabulary as u64;
    // The last token of the context goes through a pass of its own.
    let base = depth.max(1);
    let ids = ids(base + prompt, vocabulary);
    session.set_tokens(&[])?;
    session.extend(&ids[..base])?;
    let mut each = |_| !stopped();
    let mut running = session.prefill(&mut each).await?;
    session.synchronize().await?;
    let start = now();
    session.extend(&ids[base..])?;
    running = running && session.prefill(&mut each).await?;
    session.synchronize().await?;
    let prefill = now() - start;
    let (start, mut first) = (now(), None);
    for _ in 0..answer {
        turns.give().await;
        if !running || stopped() {
            return Err(rullama_runtime::RuntimeError::Cancelled.into());
        }
        session.next(DeviceSampling::Greedy).await?;
        first.get_or_insert_with(|| now() - start);
    }
    let decode = now() - start;
    let dispatches = session.step_cost(DeviceSampling::Greedy).await?.dispatches;
    let rate = |tokens: usize, ms: f64| if ms > 0.0 { tokens as f64 * 1000.0 / ms } else { 0.0 };
    Ok(json!({
        "promptTokens": prompt,
        "prefillTokensPerSecond": rate(prompt, prefill),
        "answerTokens": answer,
        "decodeTokensPerSecond": rate(answer, decode),
        "timeToFirstToken": prefill + first.unwrap_or(0.0),
        "dispatchesPerToken": dispatches,
    })
    .to_string())
}

/// Pseudo-random ids, the same in every run, so that expert routing sees no pattern.
fn ids(count: usize, vocabulary: u64) -> Vec<u32> {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // Fits: a vocabulary's ids are 32 bits.
        (state % vocabulary.max(1)) as u32
    };
    (0..count).map(|_| next()).collect()
}
