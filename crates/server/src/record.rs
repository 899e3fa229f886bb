//! What is logged about a request: never a prompt, a reply or a key.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Instant,
};

use axum::{
    body::{Body, Bytes},
    extract::{Request, State},
    http::{HeaderName, HeaderValue},
    middleware::Next,
    response::Response,
};
use http_body::{Body as _, Frame, SizeHint};
use rullama_api::{Environment as _, GenerationEvent, Timestamp, hex_id};
use serde::Serialize;

use crate::clock::Clock;

/// Receives a line per request, when its reply has ended.
pub type Log = Arc<dyn Fn(&LogEntry) + Send + Sync>;

/// One request, as it is logged. It holds no prompts, replies or keys.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LogEntry {
    /// When the request came.
    pub time: Timestamp,
    /// Its id, which the reply's headers carry too.
    pub id: String,
    /// The HTTP method.
    pub method: String,
    /// The path, without a query.
    pub path: String,
    /// The HTTP status; 499 where the client left before the end.
    pub status: u16,
    /// From the request's arrival to the end of its reply.
    pub milliseconds: u64,
    /// The model it used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens of the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<u64>,
    /// How many of them came from the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Generated tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_tokens: Option<u64>,
    /// Why it failed after its reply had begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A request while it is worked on.
pub(crate) struct Record {
    pub(crate) id: String,
    started: Instant,
    entry: Mutex<LogEntry>,
    log: Option<Log>,
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Record({})", self.id)
    }
}

impl Record {
    fn new(request: &Request, log: Option<Log>) -> Arc<Self> {
        let mut clock = Clock::default();
        let id = hex_id(&mut clock, "req_");
        let entry = LogEntry {
            time: clock.now(),
            id: id.clone(),
            method: request.method().to_string(),
            path: request.uri().path().to_owned(),
            status: CLIENT_LEFT,
            milliseconds: 0,
            model: None,
            prompt_tokens: None,
            cached_tokens: None,
            completion_tokens: None,
            error: None,
        };
        Arc::new(Self { id, started: Instant::now(), entry: Mutex::new(entry), log })
    }

    /// The record of a request.
    pub(crate) fn of(request: &Request) -> Arc<Self> {
        let known = request.extensions().get::<Arc<Self>>();
        known.map_or_else(|| Self::new(request, None), Arc::clone)
    }

    fn change(&self, change: impl FnOnce(&mut LogEntry)) {
        change(&mut self.entry.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// The whole path of the request.
    pub(crate) fn path(&self) -> String {
        self.entry.lock().unwrap_or_else(PoisonError::into_inner).path.clone()
    }

    pub(crate) fn model(&self, name: &str) {
        self.change(|entry| entry.model = Some(name.to_owned()));
    }

    pub(crate) fn event(&self, event: &GenerationEvent) {
        self.change(|entry| match event {
            GenerationEvent::Started { prompt_tokens, cached_tokens } => {
                entry.prompt_tokens = Some(*prompt_tokens);
                entry.cached_tokens = Some(*cached_tokens);
            }
            GenerationEvent::Done { stats, .. } => {
                let sum = entry.completion_tokens.unwrap_or(0) + stats.completion_tokens;
                entry.completion_tokens = Some(sum);
            }
            GenerationEvent::Failed(error) => entry.error = Some(error.to_string()),
            _ => {}
        });
    }
}

/// The status of requests whose client left, as nginx and Ollama log it.
const CLIENT_LEFT: u16 = 499;

/// Gives every request an id and logs it when its reply has ended.
pub(crate) async fn observe(
    State(log): State<Option<Log>>,
    mut request: Request,
    next: Next,
) -> Response {
    let record = Record::new(&request, log);
    request.extensions_mut().insert(Arc::clone(&record));
    let mut end = End { record, status: None };
    let mut response = next.run(request).await;
    if let Ok(id) = HeaderValue::try_from(&end.record.id) {
        for name in ["x-request-id", "request-id"] {
            response.headers_mut().insert(HeaderName::from_static(name), id.clone());
        }
    }
    let status = response.status().as_u16();
    response.map(|inner| {
        let left = inner.size_hint().exact();
        if left == Some(0) || inner.is_end_stream() {
            end.status = Some(status);
        }
        Body::new(Logged { inner, left, status, end })
    })
}

/// Writes the line when it is dropped: at the end of the reply, or when the client leaves.
struct End {
    record: Arc<Record>,
    /// The reply's status, once all of it was sent.
    status: Option<u16>,
}

impl Drop for End {
    fn drop(&mut self) {
        let Some(log) = &self.record.log else { return };
        let milliseconds = self.record.started.elapsed().as_millis();
        let mut entry = self.record.entry.lock().unwrap_or_else(PoisonError::into_inner).clone();
        entry.milliseconds = u64::try_from(milliseconds).unwrap_or(u64::MAX);
        entry.status = self.status.unwrap_or(CLIENT_LEFT);
        log(&entry);
    }
}

/// A body that knows whether all of it was sent.
struct Logged {
    inner: Body,
    /// Bytes that are left, where the length is known.
    left: Option<u64>,
    status: u16,
    end: End,
}

impl http_body::Body for Logged {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        match &polled {
            Poll::Ready(None) => self.end.status = Some(self.status),
            Poll::Ready(Some(Ok(frame))) => {
                let sent = frame.data_ref().map_or(0, |bytes| bytes.len() as u64);
                self.left = self.left.map(|left| left.saturating_sub(sent));
                if self.left == Some(0) {
                    self.end.status = Some(self.status);
                }
            }
            _ => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
