//! The audio tower against golden intermediate values.

use std::rc::Rc;

use pollster::block_on;
use rullama_engine::executor::Device;
use rullama_gguf::Gguf;
use rullama_media::audio::Audio;
use rullama_runtime::media::{AudioEncoder, REACH};
use rullama_source::MemorySource;
use rullama_testkit::golden;
use safetensors::SafeTensors;

use super::golden::devices;

/// Rows before it that a row attends to in the reference.
const GOLDEN_REACH: usize = 11;
/// The tower runs in f32, as the reference did; values reach a few units.
const CLOSE: f32 = 1e-4;

fn encoder(device: &Device) -> AudioEncoder {
    let name = "gguf/micro-e2b-mmproj-F16.gguf";
    let source = Rc::new(MemorySource::new(name, golden(name)));
    let gguf = Rc::new(block_on(Gguf::open(source)).expect("the file opens"));
    block_on(AudioEncoder::load(gguf, device.clone(), 64))
        .expect("it loads")
        .expect("there is a tower")
}

fn audio() -> Audio {
    Audio::decode(&golden("media/micro-e2b-audio.wav")).expect("a WAV file")
}

#[test]
fn every_golden_value() {
    let bytes = golden("media/micro-e2b-audio.safetensors");
    let stored = SafeTensors::deserialize(&bytes).expect("a safetensors file");
    for device in devices() {
        let taps = block_on(encoder(&device).trace(&audio(), GOLDEN_REACH)).expect("it runs");
        let mut compared = 0;
        for tap in taps {
            let name = format!("audio.{}", tap.name);
            let wanted = stored.tensor(&name).expect("every value is stored");
            let wanted = wanted.data().as_chunks().0.iter().map(|four| f32::from_le_bytes(*four));
            let worst = tap.values.iter().zip(wanted).map(|(a, b)| (a - b).abs());
            let worst = worst.fold(0.0, f32::max);
            assert!(worst < CLOSE, "{name} on {}: {worst}", device.name());
            compared += 1;
        }
        assert_eq!(compared, 5);
    }
}

#[test]
fn reach_changes_the_soft_tokens() {
    let encoder = encoder(&Device::Cpu);
    let [short, long] = [GOLDEN_REACH, REACH]
        .map(|reach| block_on(encoder.encode(&audio(), reach)).expect("it runs"));
    assert_eq!((short.count, long.count), (75, 75));
    assert_ne!(short.values, long.values);
}

#[test]
fn silence_and_short_audio() {
    let encoder = encoder(&Device::Cpu);
    let silence = Audio::new(&[0.0; 161], 1, 16_000).expect("an audio clip");
    let soft = block_on(encoder.encode(&silence, REACH)).expect("it runs");
    assert_eq!(soft.count, 1);
    assert!(soft.values.iter().all(|value| value.is_finite()));
    let click = Audio::new(&[0.5], 1, 16_000).expect("an audio clip");
    assert!(block_on(encoder.encode(&click, REACH)).is_err());
}
