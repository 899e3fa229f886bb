//! Vision towers against golden intermediate values.

use std::rc::Rc;

use pollster::block_on;
use rullama_engine::executor::Device;
use rullama_gguf::Gguf;
use rullama_media::image::{Budget, Image};
use rullama_runtime::{
    RuntimeError,
    media::{ImageSize, VisionEncoder},
};
use rullama_source::MemorySource;
use rullama_testkit::golden;
use safetensors::SafeTensors;

use super::golden::devices;

fn encoder(model: &str, device: &Device) -> VisionEncoder {
    let name = format!("gguf/{model}-mmproj-F16.gguf");
    let source = Rc::new(MemorySource::new(&name, golden(&name)));
    let gguf = Rc::new(block_on(Gguf::open(source)).expect("the file opens"));
    block_on(VisionEncoder::load(gguf, device.clone(), 64))
        .expect("it loads")
        .expect("there is a tower")
}

fn image(model: &str) -> Image {
    Image::decode(&golden(&format!("media/{model}-image.png"))).expect("a PNG file")
}

/// Towers run in f32: the reference's own f32 is within 5e-6, values reach 35.
const CLOSE: f32 = 1e-4;

#[test]
fn every_golden_value() {
    for device in devices() {
        for model in ["micro-e2b", "micro-moe"] {
            let bytes = golden(&format!("media/{model}-vision.safetensors"));
            let stored = SafeTensors::deserialize(&bytes).expect("a safetensors file");
            let (encoder, image) = (encoder(model, &device), image(model));
            for (form, sight) in
                [("native", ImageSize::Native), ("resized70", ImageSize::Fill(Budget::Tiny))]
            {
                let taps = block_on(encoder.trace(&image, sight)).expect("it runs");
                let mut compared = 0;
                for tap in taps {
                    let name = format!("image.{form}.{}", tap.name);
                    let Ok(wanted) = stored.tensor(&name) else { continue };
                    let wanted =
                        wanted.data().as_chunks().0.iter().map(|four| f32::from_le_bytes(*four));
                    let worst = tap.values.iter().zip(wanted).map(|(a, b)| (a - b).abs());
                    let worst = worst.fold(0.0, f32::max);
                    assert!(worst < CLOSE, "{model} {name} on {}: {worst}", device.name());
                    compared += 1;
                }
                assert!(compared >= 2, "{model} {form}: {compared} values compared");
            }
        }
    }
}

#[test]
fn soft_tokens_equal_the_last_tap() {
    let (encoder, image) = (encoder("micro-moe", &Device::Cpu), image("micro-moe"));
    let soft = block_on(encoder.encode(&image, ImageSize::Native)).expect("it runs");
    assert_eq!((soft.count, soft.values.len()), (20, 20 * 64));
}

#[test]
fn unfitting_images_are_refused() {
    let name = "gguf/micro-moe-mmproj-F16.gguf";
    let source = Rc::new(MemorySource::new(name, golden(name)));
    let gguf = Rc::new(block_on(Gguf::open(source)).expect("the file opens"));
    let other = block_on(VisionEncoder::load(gguf, Device::Cpu, 128));
    assert!(matches!(other, Err(RuntimeError::OtherTower { tower: 64, model: 128 })));
    let encoder = encoder("micro-moe", &Device::Cpu);
    let odd = Image::from_rgb(50, 48, vec![0; 50 * 48 * 3]).expect("an image");
    assert!(matches!(
        block_on(encoder.encode(&odd, ImageSize::Native)),
        Err(RuntimeError::Media(_))
    ));
    let long = Image::from_rgb(20_000, 1, vec![0; 60_000]).expect("an image");
    let too_long = block_on(encoder.encode(&long, ImageSize::Fill(Budget::Huge)));
    assert!(matches!(too_long, Err(RuntimeError::ImageTooLong { .. })), "{too_long:?}");
}
