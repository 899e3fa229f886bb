//! Blobs that clients upload before they create a model of them.

use std::{io, sync::Arc};

use axum::{
    body::Bytes,
    extract::{Path, Request, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use rullama_api::ApiError;
use rullama_pull::Added;
use rullama_store::Digest;
use tokio::{
    sync::mpsc::{Receiver, channel},
    task::spawn_blocking,
};

use super::{Api, OLLAMA, blocking, body, manage::failed, reply};
use crate::record::Record;

fn digest_of(text: &str) -> Result<Digest, ApiError> {
    let invalid = || ApiError::Invalid { message: "invalid digest".to_owned() };
    text.strip_prefix("sha256:").and_then(|_| Digest::parse(text)).ok_or_else(invalid)
}

/// `HEAD /api/blobs/{digest}`
pub(super) async fn exists(
    State(api): State<Arc<Api>>,
    Path(text): Path<String>,
    request: Request,
) -> Response {
    let result = async {
        let (root, digest) = (api.store()?, digest_of(&text)?);
        let found = blocking(move || rullama_pull::has_blob(&root, &digest)).await?;
        let status = if found { StatusCode::OK } else { StatusCode::NOT_FOUND };
        Ok(status.into_response())
    };
    reply::finish(result.await, OLLAMA, &Record::of(&request))
}

/// `POST /api/blobs/{digest}`
pub(super) async fn upload(
    State(api): State<Arc<Api>>,
    Path(text): Path<String>,
    request: Request,
) -> Response {
    let record = Record::of(&request);
    let result = async {
        let (root, digest) = (api.store()?, digest_of(&text)?);
        let max = api.limits.upload;
        body::check_length(request.headers(), max)?;
        let (sender, pieces) = channel(4);
        let writing = spawn_blocking(move || {
            let mut reader = Pieces { pieces, current: Bytes::new() };
            rullama_pull::add_blob(&root, &digest, &mut reader, max)
        });
        let mut body = request.into_body().into_data_stream();
        loop {
            let piece = body::next(&api.limits, &mut body).await;
            let is_end = !matches!(piece, Ok(Some(_)));
            // The writer has stopped reading where it refuses the blob, or has it already.
            if sender.send(piece).await.is_err() || is_end {
                break;
            }
        }
        drop(sender);
        let stopped =
            |error: tokio::task::JoinError| ApiError::Internal { message: error.to_string() };
        let added = writing.await.map_err(stopped)?;
        let status = match added.map_err(|error| failed(&error, &text))? {
            Added::Created => StatusCode::CREATED,
            Added::Existing => StatusCode::OK,
        };
        Ok(status.into_response())
    };
    reply::finish(result.await, OLLAMA, &record)
}

/// A body that is read on another thread.
struct Pieces {
    pieces: Receiver<Result<Option<Bytes>, ApiError>>,
    current: Bytes,
}

impl io::Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.pieces.blocking_recv() {
                Some(Ok(Some(piece))) => self.current = piece,
                Some(Ok(None)) => return Ok(0),
                Some(Err(error)) => return Err(io::Error::other(error.to_string())),
                // The client left: what came must not pass for the whole.
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        let count = self.current.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.current.split_to(count));
        Ok(count)
    }
}
