//! Bodies of requests, within limits of size and time.

use std::io::Read;

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, header},
};
use futures_util::StreamExt;
use rullama_api::ApiError;
use tokio::time::timeout;

use crate::ApiLimits;

/// Reads a body to its end.
pub(super) async fn read(
    limits: &ApiLimits,
    headers: &HeaderMap,
    body: Body,
) -> Result<Bytes, ApiError> {
    let limit = limits.body;
    check_length(headers, limit)?;
    let mut pieces = body.into_data_stream();
    let mut bytes = Vec::new();
    while let Some(piece) = next(limits, &mut pieces).await? {
        if (bytes.len() + piece.len()) as u64 > limit {
            return Err(ApiError::TooLarge { limit });
        }
        bytes.extend_from_slice(&piece);
    }
    if is_zstd(headers) {
        return Ok(unpacked(&bytes, limit)?.into());
    }
    Ok(bytes.into())
}

/// The next piece of a body; an error after too long a silence.
pub(super) async fn next(
    limits: &ApiLimits,
    pieces: &mut axum::body::BodyDataStream,
) -> Result<Option<Bytes>, ApiError> {
    let invalid = |message: String| ApiError::Invalid { message };
    match timeout(limits.silence, pieces.next()).await {
        Ok(None) => Ok(None),
        Ok(Some(Ok(piece))) => Ok(Some(piece)),
        Ok(Some(Err(error))) => Err(invalid(format!("the request's body broke off: {error}"))),
        Err(_) => Err(invalid("the request's body did not arrive in time".to_owned())),
    }
}

/// Refuses a body that says that it is too long before any of it is read.
pub(super) fn check_length(headers: &HeaderMap, limit: u64) -> Result<(), ApiError> {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let length = length.and_then(|value| value.parse::<u64>().ok()).unwrap_or(0);
    if length > limit { Err(ApiError::TooLarge { limit }) } else { Ok(()) }
}

fn is_zstd(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_ENCODING).is_some_and(|value| value.as_bytes() == b"zstd")
}

/// What a compressed body holds; never more than `limit`, whatever it promises.
fn unpacked(bytes: &[u8], limit: u64) -> Result<Vec<u8>, ApiError> {
    let broken = |error: &dyn std::fmt::Display| ApiError::Invalid {
        message: format!("the body is not valid zstd: {error}"),
    };
    let mut decoder =
        ruzstd::decoding::StreamingDecoder::new(bytes).map_err(|error| broken(&error))?;
    let mut out = Vec::new();
    let mut limited = decoder.by_ref().take(limit.saturating_add(1));
    limited.read_to_end(&mut out).map_err(|error| broken(&error))?;
    if out.len() as u64 > limit { Err(ApiError::TooLarge { limit }) } else { Ok(out) }
}
