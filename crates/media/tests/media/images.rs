//! Sizes, pixels and patches.

use proptest::prelude::*;
use rullama_media::{
    MediaError,
    image::{Budget, CELL, Filter, Image, Size},
};
use rullama_testkit::golden;

use super::{floats, ids};

const BUDGETS: [Budget; 5] =
    [Budget::Tiny, Budget::Small, Budget::Medium, Budget::Large, Budget::Huge];

fn size(width: u32, height: u32) -> Size {
    Size { width, height }
}

#[test]
fn sizes_equal_the_reference() {
    let table = [
        ((224, 224), [(384, 384), (528, 528), (768, 768), (1104, 1104), (1584, 1584)]),
        ((1, 1), [(384, 384), (528, 528), (768, 768), (1104, 1104), (1584, 1584)]),
        ((640, 480), [(432, 336), (624, 480), (912, 672), (1296, 960), (1824, 1344)]),
        ((768, 1024), [(336, 432), (480, 624), (672, 912), (960, 1296), (1344, 1824)]),
        ((1920, 1080), [(528, 288), (720, 384), (1056, 576), (1488, 816), (2112, 1200)]),
        ((333, 777), [(240, 576), (336, 864), (480, 1200), (720, 1728), (1008, 2448)]),
        ((3000, 500), [(960, 144), (1344, 192), (1920, 288), (2736, 432), (3888, 624)]),
        ((100, 3000), [(48, 2160), (96, 3072), (144, 4368), (192, 6192), (288, 8784)]),
        ((4000, 10), [(3360, 48), (6720, 48), (13440, 48), (22704, 48), (32112, 48)]),
    ];
    for ((width, height), targets) in table {
        for (budget, (wide, high)) in BUDGETS.into_iter().zip(targets) {
            assert_eq!(size(width, height).target(budget), size(wide, high), "{width} × {height}");
        }
    }
}

#[test]
fn pixels_equal_the_goldens_bit_for_bit() {
    for model in ["micro-e2b", "micro-moe"] {
        let file = format!("media/{model}-vision.safetensors");
        let image = Image::decode(&golden(&format!("media/{model}-image.png"))).expect("a PNG");
        for (form, image) in [("native", image.clone()), ("resized70", image.fill(Budget::Tiny))] {
            let patches = image.patches(16).expect("whole patches");
            let grid = [patches.columns, patches.rows, image.size().tokens()].map(u32::cast_signed);
            assert_eq!(ids(&file, &format!("image.{form}.grid")), grid);
            let wanted = floats(&file, &format!("image.{form}.patches"));
            for (at, wanted) in
                ids(&file, &format!("image.{form}.patch_index")).into_iter().zip(wanted.chunks(768))
            {
                let start = at as usize * 768;
                assert_eq!(
                    &patches.values[start..start + 768],
                    wanted,
                    "{model} {form} patch {at}"
                );
            }
        }
    }
}

#[test]
fn patches_are_ordered_row_column_channel() {
    let pixels = (0..32_u8).flat_map(|y| (0..48_u8).flat_map(move |x| [x, y, 0]));
    let image = Image::from_rgb(48, 32, pixels.collect()).expect("matching byte count");
    let patches = image.patches(16).expect("whole patches");
    assert_eq!((patches.columns, patches.rows, patches.count()), (3, 2, 6));
    // Patch 4 is the middle one of the second row; within it, row 2, column 5.
    let at = 4 * 768 + (2 * 16 + 5) * 3;
    assert_eq!(patches.values[at..at + 2], [21.0, 18.0].map(|value| value * (1.0 / 255.0)));
    assert_eq!(image.patches(20), Err(MediaError::NotWhole { width: 48, height: 32, side: 20 }));
}

#[test]
fn transparent_pixels_are_blended_over_white() {
    let rgba = vec![10, 20, 30, 255, 10, 20, 30, 0, 0, 100, 200, 128];
    let image = Image::from_rgba(3, 1, rgba).expect("matching byte count");
    assert_eq!(&*image.rgb(), [10, 20, 30, 255, 255, 255, 127, 177, 227]);
}

/// Pixels are converted four at a time, and one by one if any of the four is not opaque.
#[test]
fn opaque_pixels_are_kept_at_every_position() {
    let rgba: Vec<u8> = (0..4 * 11).map(|i| if i % 4 == 3 { 255 } else { i * 5 }).collect();
    let opaque: Vec<u8> = rgba.chunks(4).flat_map(|pixel| pixel[..3].to_vec()).collect();
    let image = Image::from_rgba(11, 1, rgba.clone()).expect("eleven pixels");
    assert_eq!(&*image.rgb(), opaque);
    assert_eq!(&*image.rgba(), rgba);
    let image = Image::from_rgb(11, 1, opaque.clone()).expect("eleven pixels");
    assert_eq!(&*image.rgba(), rgba);
    for clear in 0..11 {
        let (mut rgba, mut wanted) = (rgba.clone(), opaque.clone());
        rgba[4 * clear + 3] = 0;
        wanted[3 * clear..3 * clear + 3].fill(255);
        let image = Image::from_rgba(11, 1, rgba).expect("eleven pixels");
        assert_eq!(&*image.rgb(), wanted, "pixel {clear}");
    }
}

#[test]
fn invalid_images_are_refused() {
    assert_eq!(
        Image::from_rgb(0, 5, Vec::new()),
        Err(MediaError::EmptyImage { width: 0, height: 5 })
    );
    let wrong = MediaError::WrongLength { bytes: 5, width: 2, height: 1, channels: 3 };
    assert_eq!(Image::from_rgb(2, 1, vec![0; 5]), Err(wrong));
    assert!(matches!(
        Image::from_rgb(u32::MAX, u32::MAX, Vec::new()),
        Err(MediaError::ImageTooLarge { .. })
    ));
    assert_eq!(Budget::try_from(71), Err(MediaError::BadBudget(71)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_size_fits_its_budget(width in 1..30_000_u32, height in 1..30_000_u32, which in 0..5_usize) {
        let target = size(width, height).target(BUDGETS[which]);
        prop_assert!(target.width >= CELL && target.height >= CELL);
        prop_assert!(target.width.is_multiple_of(CELL) && target.height.is_multiple_of(CELL));
        prop_assert!(target.tokens() <= BUDGETS[which].tokens());
    }

    #[test]
    fn one_colour_stays_one_colour(
        width in 1..40_u32, height in 1..40_u32, wide in 1..60_u32, high in 1..60_u32, colour in any::<[u8; 3]>(),
        bilinear in any::<bool>()
    ) {
        let pixels = colour.repeat((width * height) as usize);
        let image = Image::from_rgb(width, height, pixels).expect("matching byte count");
        let filter = if bilinear { Filter::Bilinear } else { Filter::Bicubic };
        let resized = image.resize(size(wide, high), filter);
        prop_assert_eq!(resized.size(), size(wide, high));
        prop_assert!(resized.rgba().chunks(4).all(|pixel| pixel[3] == 255));
        // Weights are rounded to fifteen bits, so their sum may differ slightly from one.
        for (at, value) in resized.rgb().iter().enumerate() {
            prop_assert!(value.abs_diff(colour[at % 3]) <= 1);
        }
    }
}
