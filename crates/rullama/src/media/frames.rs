//! A video as a folder of its frames.

use std::path::Path;

use rullama_runtime::media::{Frame, MediaKind};

use super::{kind_of, read_image};
use crate::error::Error;

/// Maximum number of frames of a video that the model gets.
const MAX_FRAMES: usize = 32;

/// The frames in a folder, sorted by name; above the limit, evenly spaced ones.
pub(super) fn frames(folder: &Path) -> Result<Vec<Frame>, Error> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(Error::file(folder))? {
        paths.push(entry.map_err(Error::file(folder))?.path());
    }
    paths.retain(|path| kind_of(path) == Some(MediaKind::Image));
    if paths.is_empty() {
        return Err(Error::NoFrames { path: folder.into() });
    }
    paths.sort();
    selected(paths.len())
        .map(|index| {
            let path = &paths[index];
            let seconds = time(path).unwrap_or(index as f64);
            Ok(Frame { seconds, image: read_image(path)? })
        })
        .collect()
}

/// The indices of the frames to use, of `total` frames.
fn selected(total: usize) -> impl Iterator<Item = usize> {
    let count = total.min(MAX_FRAMES);
    (0..count).map(move |index| index * total / count)
}

/// The time at the end of a file name: `frame-12.5s.png`.
fn time(path: &Path) -> Option<f64> {
    let stem = path.file_stem()?.to_str()?.strip_suffix('s')?;
    let digits = stem.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    stem[digits..].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_names() {
        for (name, wanted) in [
            ("frame-12.5s.png", Some(12.5)),
            ("7s.jpg", Some(7.0)),
            ("a0.s.png", Some(0.0)),
            ("frame-12.png", None),
            ("glass.png", None),
            ("1.2.3s.png", None),
        ] {
            assert_eq!(time(&std::path::PathBuf::from(name)), wanted, "{name}");
        }
    }

    #[test]
    fn evenly_spaced_frames_are_selected() {
        assert_eq!(selected(3).collect::<Vec<_>>(), [0, 1, 2]);
        let some: Vec<usize> = selected(64).collect();
        assert_eq!((some.len(), some[0], some[1], some[31]), (32, 0, 2, 62));
    }
}
