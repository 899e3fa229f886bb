//! From an engine's events to a reply: a stream of frames, or one body.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    response::Response,
};
use futures_util::stream;
use rullama_api::{
    ApiError, GenerationEvent, GenerationRequest,
    response::{Reply, ReplyWriter},
};
use serde_json::Value;
use tokio::time::timeout;

use super::{counters::Place, reply};
use crate::{clock::Clock, engine::Events, record::Record};

/// How long a stream may be silent before something is sent to keep the connection.
const SILENCE: Duration = Duration::from_secs(30);

/// A writer of any API.
pub(super) type Writer = Box<dyn ReplyWriter + Send>;

/// A generation on its way to a client. Dropping it, as happens when the client is gone, cancels it.
pub(super) struct Running {
    pub(super) writer: Writer,
    pub(super) clock: Clock,
    pub(super) events: Events,
    pub(super) place: Place,
    pub(super) record: Arc<Record>,
}

impl Running {
    /// The next event. An engine that ends without a word has failed.
    async fn next(&mut self) -> GenerationEvent {
        let event = self.events.recv().await;
        self.seen(event)
    }

    fn seen(&mut self, event: Option<GenerationEvent>) -> GenerationEvent {
        let event = event.unwrap_or_else(|| {
            let message = "the engine stopped before the reply was complete".to_owned();
            GenerationEvent::Failed(ApiError::Internal { message })
        });
        self.place.run();
        self.record.event(&event);
        event
    }

    /// The whole reply.
    pub(super) async fn body(mut self, request: &GenerationRequest) -> Result<Value, ApiError> {
        let mut reply = Reply::new(request);
        while !reply.is_complete() {
            let event = self.next().await;
            reply.push(event)?;
        }
        Ok(self.writer.body(&mut self.clock, &reply))
    }

    /// The reply as a stream. Errors before the first event get a status of their own; after a long silence the stream begins anyway, so that
    /// clients do not give up.
    pub(super) async fn stream(mut self) -> Result<Response, ApiError> {
        let content_type = self.writer.content_type();
        let mut out = Vec::new();
        if let Ok(first) = timeout(SILENCE, self.next()).await {
            if let GenerationEvent::Failed(error) = first {
                return Err(error);
            }
            self.writer.event(&mut self.clock, &first, &mut out);
        } else {
            self.writer.keep_alive(&mut self.clock, &mut out);
        }
        let frames = stream::unfold((self, out), |(mut running, out)| async move {
            let out = running.frames(out).await?;
            Some((Ok::<_, Infallible>(Bytes::from(out)), (running, Vec::new())))
        });
        Ok(reply::streamed(content_type, Body::from_stream(frames)))
    }

    /// The next frames, as many as are ready; none after the last.
    async fn frames(&mut self, mut out: Vec<u8>) -> Option<Vec<u8>> {
        while out.is_empty() {
            if self.writer.is_finished() {
                return None;
            }
            match timeout(SILENCE, self.next()).await {
                Ok(event) => self.writer.event(&mut self.clock, &event, &mut out),
                Err(_) => self.writer.keep_alive(&mut self.clock, &mut out),
            }
            while !self.writer.is_finished()
                && let Ok(event) = self.events.try_recv()
            {
                let event = self.seen(Some(event));
                self.writer.event(&mut self.clock, &event, &mut out);
            }
        }
        Some(out)
    }
}
