//! Audio file decoding with `symphonia`.

use std::io::Cursor;

use symphonia::{
    core::{
        codecs::audio::AudioDecoderOptions,
        errors::Error,
        formats::{FormatOptions, TrackType, probe::Hint},
        io::MediaSourceStream,
        meta::MetadataOptions,
    },
    default::{get_codecs, get_probe},
};

use super::{Audio, resample::Mixer, vorbis};
use crate::MediaError;

pub(super) fn decode(file: &[u8]) -> Result<Audio, MediaError> {
    let source = MediaSourceStream::new(Box::new(Cursor::new(file.to_vec())), Default::default());
    let mut format = get_probe()
        .probe(&Hint::new(), source, FormatOptions::default(), MetadataOptions::default())
        .map_err(|error| bad(&error))?;
    let track =
        format.default_track(TrackType::Audio).ok_or_else(|| bad_audio("bad_audio audio track"))?;
    let track_id = track.id;
    let codec = track.codec_params.as_ref().and_then(|codec| codec.audio());
    let codec = codec.ok_or_else(|| bad_audio("unknown codec"))?;
    vorbis::check(codec.extra_data.as_deref().unwrap_or_default())?;
    let mut decoder = get_codecs()
        .make_audio_decoder(codec, &AudioDecoderOptions::default())
        .map_err(|error| bad(&error))?;

    let mut samples = Vec::new();
    let mut mixer: Option<((u32, usize), Mixer)> = None;
    loop {
        let packet = match format.next_packet() {
            Ok(Some(packet)) if packet.track_id == track_id => packet,
            Ok(Some(_)) => continue,
            // A truncated file ends at its last whole packet.
            Ok(None) | Err(Error::IoError(_) | Error::ResetRequired) => break,
            Err(error) => return Err(bad(&error)),
        };
        match decoder.decode(&packet) {
            Ok(buffer) => {
                let (rate, channels) = (buffer.spec().rate(), buffer.spec().channels().count());
                let (shape, mixer) = match &mut mixer {
                    Some((shape, mixer)) => (*shape, mixer),
                    none => {
                        let new = ((rate, channels), Mixer::new(channels, rate)?);
                        let (shape, mixer) = none.insert(new);
                        (*shape, mixer)
                    }
                };
                if shape != (rate, channels) {
                    return Err(bad_audio("its sample rate changes"));
                }
                buffer.copy_to_vec_interleaved::<f32>(&mut samples);
                mixer.push(&samples)?;
            }
            // Players skip packets that cannot be decoded, too.
            Err(Error::DecodeError(_)) => {}
            Err(error) => return Err(bad(&error)),
        }
    }
    let (_, mixer) = mixer.ok_or(MediaError::TooShort { samples: 0 })?;
    Audio::mixed(mixer)
}

fn bad(error: &Error) -> MediaError {
    MediaError::BadAudio { reason: error.to_string() }
}

fn bad_audio(reason: &str) -> MediaError {
    MediaError::BadAudio { reason: reason.into() }
}

/// The codec's setup data of a file's audio track.
#[cfg(test)]
pub(super) fn headers(file: &[u8]) -> Option<Vec<u8>> {
    let source = MediaSourceStream::new(Box::new(Cursor::new(file.to_vec())), Default::default());
    let format = get_probe().probe(
        &Hint::new(),
        source,
        FormatOptions::default(),
        MetadataOptions::default(),
    );
    let format = format.ok()?;
    let codec = format.default_track(TrackType::Audio)?.codec_params.as_ref()?.audio()?;
    codec.extra_data.as_deref().map(<[u8]>::to_vec)
}
