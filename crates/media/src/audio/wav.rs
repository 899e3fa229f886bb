//! WAV decoding. Own code, since streamed and truncated files have wrong lengths in their headers and are read anyway.

use super::{Audio, resample::Mixer};
use crate::MediaError;

const PCM: u16 = 1;
const FLOAT: u16 = 3;
const EXTENSIBLE: u16 = 0xfffe;
/// Frames converted at a time.
const FRAMES: usize = 256;
/// Offset of the actual format in an extensible `fmt ` chunk.
const SUBFORMAT: usize = 24;

/// The chunk `fmt `.
#[derive(Clone, Copy)]
struct Format {
    kind: u16,
    channels: usize,
    rate: u32,
    bits: u16,
}

pub(super) fn is_wav(file: &[u8]) -> bool {
    file.starts_with(b"RIFF") && file.get(8..12) == Some(b"WAVE")
}

pub(super) fn decode(file: &[u8]) -> Result<Audio, MediaError> {
    let mut rest = file.get(12..).unwrap_or_default();
    let mut format = None;
    while let Some((head, payload)) = rest.split_first_chunk::<8>() {
        let claimed = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        let length = claimed.min(payload.len());
        match &head[..4] {
            b"fmt " => format = Some(read_format(&payload[..length])?),
            b"data" => {
                let format = format.ok_or_else(|| bad("no format chunk"))?;
                // Streaming writers leave the length at zero.
                let length = if claimed == 0 { payload.len() } else { length };
                return audio(&payload[..length], format);
            }
            _ => {}
        }
        // Chunks are padded to even lengths.
        rest = payload.get(length + length % 2..).unwrap_or_default();
    }
    Err(bad("no audio data"))
}

fn read_format(chunk: &[u8]) -> Result<Format, MediaError> {
    let word = |at: usize| {
        let bytes = chunk.get(at..at + 2).ok_or_else(|| bad("truncated format chunk"))?;
        Ok::<_, MediaError>(u16::from_le_bytes([bytes[0], bytes[1]]))
    };
    let mut kind = word(0)?;
    if kind == EXTENSIBLE {
        kind = word(SUBFORMAT)?;
    }
    let rate = u32::from(word(4)?) | u32::from(word(6)?) << 16;
    let format = Format { kind, channels: usize::from(word(2)?), rate, bits: word(14)? };
    match (format.channels, format.kind, format.bits) {
        (0, ..) => Err(bad("no channels")),
        (_, PCM, 8 | 16 | 24 | 32) | (_, FLOAT, 32 | 64) => Ok(format),
        _ => Err(bad("unsupported sample format")),
    }
}

fn audio(data: &[u8], format: Format) -> Result<Audio, MediaError> {
    let width = usize::from(format.bits / 8);
    let whole = data.len() - data.len() % (width * format.channels);
    let mut mixer = Mixer::new(format.channels, format.rate)?;
    let mut samples = Vec::new();
    for block in data[..whole].chunks(FRAMES * width * format.channels) {
        samples.clear();
        samples.extend(block.chunks_exact(width).map(|bytes| sample(bytes, format.kind)));
        mixer.push(&samples)?;
    }
    Audio::mixed(mixer)
}

fn sample(bytes: &[u8], kind: u16) -> f32 {
    match (kind, bytes) {
        (PCM, [byte]) => (f32::from(*byte) - 128.0) / 128.0,
        (PCM, [a, b]) => f32::from(i16::from_le_bytes([*a, *b])) / 32_768.0,
        (PCM, [a, b, c]) => (i32::from_le_bytes([0, *a, *b, *c]) >> 8) as f32 / 8_388_608.0,
        (PCM, [a, b, c, d]) => {
            (f64::from(i32::from_le_bytes([*a, *b, *c, *d])) / 2_147_483_648.0) as f32
        }
        (_, [a, b, c, d]) => f32::from_le_bytes([*a, *b, *c, *d]),
        (_, bytes) => bytes.try_into().map_or(0.0, |bytes| f64::from_le_bytes(bytes) as f32),
    }
}

fn bad(reason: &str) -> MediaError {
    MediaError::BadAudio { reason: reason.into() }
}
