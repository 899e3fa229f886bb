//! Selects the files of a repository that a name refers to.

/// Files that are not the weights of a model: projectors, importance matrices, drafters.
const OTHERS: [&str; 6] = ["mmproj", "imatrix", "mtp-", "eagle3-", "dflash-", "dspark-"];
/// The quantisations to choose when the name has no tag.
const DEFAULTS: [&str; 2] = ["Q4_K_M", "Q8_0"];
/// Formats of projectors, best first.
const PROJECTORS: [&str; 4] = ["F16", "BF16", "Q8_0", "F32"];
const MAX_SHARDS: usize = 1000;

/// The files to pull, as indices.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// The weights; several files in order if they are split.
    pub(super) weights: Vec<usize>,
    pub(super) projector: Option<usize>,
}

/// Selects from `paths` by `tag`: a quantisation or a file name, case-insensitive.
pub(super) fn choose(paths: &[&str], tag: Option<&str>) -> Option<Choice> {
    let mut models: Vec<usize> = (0..paths.len()).filter(|&file| is_model(paths[file])).collect();
    models.sort_by_key(|&file| paths[file]);
    let with =
        |quant: &str| models.iter().copied().find(|&file| has_quant(name_of(paths[file]), quant));
    let named = |tag: &str| {
        let same = |file: &usize| {
            let name = name_of(paths[*file]);
            name.eq_ignore_ascii_case(tag) || stem(name).eq_ignore_ascii_case(tag)
        };
        models.iter().copied().find(same)
    };
    let first = match tag {
        Some(tag) => named(tag).or_else(|| with(tag)),
        None => DEFAULTS.iter().find_map(|quant| with(quant)).or_else(|| models.first().copied()),
    }?;
    let weights = shards(paths, first)?;
    Some(Choice { projector: projector(paths, paths[first]), weights })
}

/// The files that can be selected.
pub(super) fn models<'a>(paths: &[&'a str]) -> Vec<&'a str> {
    let mut models: Vec<&str> = paths.iter().copied().filter(|path| is_model(path)).collect();
    models.sort_unstable();
    models.truncate(50);
    models
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn stem(name: &str) -> &str {
    let at = name.len().saturating_sub(5);
    if is_gguf(name) { name.get(..at).unwrap_or(name) } else { name }
}

fn is_gguf(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with(".gguf")
}

/// Weights, or the first file of split weights.
fn is_model(path: &str) -> bool {
    let name = name_of(path).to_ascii_lowercase();
    let first = shard(&name).is_none_or(|(_, number, _)| number == 1);
    is_gguf(&name) && first && !OTHERS.iter().any(|other| name.contains(other))
}

/// Whether `name` contains `quant` as a word followed by `.` or `-`: `Q4_K` is not in `x-Q4_K_M.gguf`.
fn has_quant(name: &str, quant: &str) -> bool {
    let (name, quant) = (name.to_ascii_lowercase(), quant.to_ascii_lowercase());
    name.match_indices(&quant).any(|(at, _)| {
        let before = name[..at].chars().next_back();
        let after = name[at + quant.len()..].chars().next();
        let word = |c: char| c.is_alphanumeric() || c == '_';
        !before.is_some_and(word) && matches!(after, Some('.' | '-'))
    })
}

/// Splits `x-00002-of-00005.gguf` into the prefix, 2 and 5.
fn shard(name: &str) -> Option<(&str, usize, usize)> {
    let (rest, count) = stem(name).rsplit_once("-of-")?;
    let (before, number) = rest.rsplit_once('-')?;
    let parse = |text: &str| {
        let digits = text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok()).flatten()
    };
    Some((before, parse(number)?, parse(count)?))
}

/// All files of the weights that begin with `first`; `None` if one is missing.
fn shards(paths: &[&str], first: usize) -> Option<Vec<usize>> {
    let Some((before, _, count)) = shard(name_of(paths[first])) else { return Some(vec![first]) };
    if count == 0 || count > MAX_SHARDS {
        return None;
    }
    let folder = folder_of(paths[first]);
    let find = |wanted: usize| {
        (0..paths.len()).find(|&file| {
            folder_of(paths[file]) == folder
                && is_gguf(paths[file])
                && shard(name_of(paths[file])) == Some((before, wanted, count))
        })
    };
    (1..=count).map(find).collect()
}

/// The projector nearest to the weights in the folder tree, in the best format.
fn projector(paths: &[&str], weights: &str) -> Option<usize> {
    let is_projector = |path: &str| {
        let name = name_of(path).to_ascii_lowercase();
        is_gguf(&name) && name.contains("mmproj")
    };
    let distance = |path: &str| {
        let (a, b) = (folder_of(path), folder_of(weights));
        let parts = |folder: &str| folder.split('/').filter(|part| !part.is_empty()).count();
        let common = a.split('/').zip(b.split('/')).take_while(|(a, b)| a == b && !a.is_empty());
        let common = common.count();
        parts(a) + parts(b) - 2 * common
    };
    let format = |path: &str| {
        PROJECTORS
            .iter()
            .position(|format| has_quant(name_of(path), format))
            .unwrap_or(PROJECTORS.len())
    };
    (0..paths.len())
        .filter(|&file| is_projector(paths[file]))
        .min_by_key(|&file| (distance(paths[file]), format(paths[file]), paths[file]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{choose, models};

    /// The chosen files: weights, then the projector.
    fn chosen<'a>(paths: &[&'a str], tag: Option<&str>) -> Option<Vec<&'a str>> {
        let choice = choose(paths, tag)?;
        Some(choice.weights.into_iter().chain(choice.projector).map(|file| paths[file]).collect())
    }

    #[test]
    fn quantisations_and_file_names() {
        let paths = [
            "README.md",
            "m-BF16.gguf",
            "m-IQ4_XS.gguf",
            "m-Q4_K_S.gguf",
            "m-Q4_K_M.gguf",
            "m-Q8_0.gguf",
            "mmproj-m-Q4_K_M.gguf",
            "m-imatrix-Q4_K_M.gguf",
            "a-mtp-m-Q4_K_M.gguf",
        ];
        let with = |file| Some(vec![file, "mmproj-m-Q4_K_M.gguf"]);
        assert_eq!(chosen(&paths, None), with("m-Q4_K_M.gguf"));
        for tag in ["Q8_0", "q8_0", "m-Q8_0.gguf", "M-q8_0"] {
            assert_eq!(chosen(&paths, Some(tag)), with("m-Q8_0.gguf"), "{tag}");
        }
        for tag in ["Q4_K", "Q4_XS", "Q5_K_M", "mmproj", "README.md", "K_M"] {
            assert_eq!(chosen(&paths, Some(tag)), None, "{tag}");
        }
        assert_eq!(chosen(&["b-Q8_0.gguf", "a-F16.gguf"], None), Some(vec!["b-Q8_0.gguf"]));
        assert_eq!(chosen(&["b-F32.gguf", "a-F16.gguf"], None), Some(vec!["a-F16.gguf"]));
        assert_eq!(chosen(&["model.safetensors", "mmproj-F16.gguf"], None), None);
        assert_eq!(models(&paths).len(), 5);
    }

    #[test]
    fn all_shards_or_nothing() {
        let shards = [
            "BF16/m-BF16-00002-of-00003.gguf",
            "BF16/m-BF16-00001-of-00003.gguf",
            "BF16/m-BF16-00003-of-00003.gguf",
        ];
        let other = "m-BF16-00003-of-00003.gguf";
        let all = [shards[0], other, shards[1], shards[2]];
        assert_eq!(chosen(&all, Some("bf16")), Some(vec![shards[1], shards[0], shards[2]]));
        assert_eq!(chosen(&[shards[0], other, shards[1]], Some("bf16")), None);
        assert_eq!(chosen(&["m-00001-of-99999.gguf"], None), None);
        assert_eq!(chosen(&["m-00001-of-00000.gguf"], None), None);
    }

    #[test]
    fn the_nearest_projector() {
        let paths = [
            "a/m-Q8_0.gguf",
            "mmproj-F16.gguf",
            "b/mmproj-F16.gguf",
            "a/mmproj-F32.gguf",
            "a/mmproj-BF16.gguf",
        ];
        assert_eq!(chosen(&paths, None), Some(vec![paths[0], paths[4]]));
        assert_eq!(chosen(&paths[..3], None), Some(vec![paths[0], paths[1]]));
    }

    proptest! {
        #[test]
        fn any_listing_gives_existing_files_or_none(
            paths in prop::collection::vec("[a-zé/]{0,6}(-Q8_0|-0000[0-3]-of-0000[0-3])?(.gguf|mmproj|.GGUF)?", 0..8),
            tag in prop::option::of(".{0,6}"),
        ) {
            let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
            if let Some(choice) = choose(&paths, tag.as_deref()) {
                prop_assert!(!choice.weights.is_empty());
                prop_assert!(choice.weights.iter().chain(&choice.projector).all(|&file| file < paths.len()));
            }
        }
    }
}
