//! Images, audio and videos of the command line: flags, files, and the towers that encode them.

mod frames;

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    rc::Rc,
};

use anyhow::{Context, Result, ensure};
use clap::{
    Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, builder::PathBufValueParser,
};
use rullama_runtime::{
    MediaEncoders, Model, RuntimeError,
    audio::Audio,
    image::{Budget, Image},
    media::ImageSize,
    media::{MediaKind, Medium},
};
use rullama_source::{ByteSource, FileSource};

use crate::{
    locate::{Place, Stores},
    output_file::protect,
};

/// No image or audio clip that decodes within our limits is a larger file.
const MOST_BYTES: u64 = 1 << 30;
/// How names of images and audio end.
const IMAGES: [&str; 5] = ["png", "jpg", "jpeg", "webp", "gif"];
const AUDIO: [&str; 5] = ["wav", "mp3", "flac", "ogg", "oga"];
const HEADING: &str = "Images and audio";

/// Files that may have towers.
pub(crate) type Projectors = Vec<Rc<dyn ByteSource>>;

/// A file that was named, and what it is said to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MediaFile {
    pub(crate) kind: MediaKind,
    pub(crate) path: PathBuf,
}

/// The media of a command, in the order in which they were named.
#[derive(Debug, Clone)]
pub(crate) struct MediaArgs {
    pub(crate) files: Vec<MediaFile>,
    /// Where the towers are, if not where the model says.
    pub(crate) mmproj: Option<String>,
    /// How large images are seen.
    pub(crate) sight: ImageSize,
}

/// Flags of media and their help.
const FLAGS: [(MediaKind, &str, &str); 3] = [
    (MediaKind::Image, "image", "Image file: PNG, JPEG, WebP or GIF; may be repeated"),
    (MediaKind::Audio, "audio", "Audio file: WAV, MP3, FLAC or OGG Vorbis; may be repeated"),
    (
        MediaKind::Video,
        "video",
        "Video as a folder of images, one per second unless their names end in a time such as 12.5s",
    ),
];

/// By hand, since derived flags forget in which order different ones came.
impl FromArgMatches for MediaArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut files = Vec::new();
        for (kind, flag, _) in FLAGS {
            let places = matches.indices_of(flag).into_iter().flatten();
            let paths = matches.get_many::<PathBuf>(flag).into_iter().flatten();
            files.extend(places.zip(paths).map(|(place, path)| (place, kind, path.clone())));
        }
        files.sort_by_key(|(place, ..)| *place);
        Ok(Self {
            files: files.into_iter().map(|(_, kind, path)| MediaFile { kind, path }).collect(),
            mmproj: matches.get_one::<String>("mmproj").cloned(),
            sight: matches.get_one("image-budget").copied().unwrap_or_default(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for MediaArgs {
    fn augment_args(command: Command) -> Command {
        let media = FLAGS.map(|(_, flag, help)| {
            let arg = Arg::new(flag).long(flag).value_name("FILE").help(help);
            arg.action(ArgAction::Append).value_parser(PathBufValueParser::new())
        });
        let mmproj = Arg::new("mmproj").long("mmproj").value_name("FILE").help(
            "Projector file of the model: path or URL; if not given, the store's, or the encoders inside the model",
        );
        let budget = Arg::new("image-budget").long("image-budget").value_name("N|native").help(
            "Maximum tokens per image: 70, 140, 280 (default), 560 or 1120; `native` keeps the image's size",
        );
        let all = media.into_iter().chain([mmproj, budget.value_parser(sight)]);
        command.args(all.map(|arg| arg.help_heading(HEADING)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn sight(text: &str) -> Result<ImageSize, String> {
    if text == "native" {
        return Ok(ImageSize::Native);
    }
    let tokens: u32 = text.parse().map_err(|_| "give a number of tokens, or `native`")?;
    Budget::try_from(tokens).map(ImageSize::Fill).map_err(|error| error.to_string())
}

impl MediaArgs {
    /// Where the towers of a model may be, beside its own file.
    pub(crate) fn projectors(&self, stores: &Stores, place: &Place) -> Result<Projectors> {
        if let Some(name) = &self.mmproj {
            return Ok(vec![stores.find(name)?.source()?]);
        }
        let Place::Store(files) = place else { return Ok(Vec::new()) };
        let open = |layer: &rullama_store::Layer| {
            Ok(Rc::new(FileSource::open(&layer.path)?) as Rc<dyn ByteSource>)
        };
        files.projectors.iter().map(open).collect()
    }

    /// The encoders of a model.
    pub(crate) fn encoders(
        &self,
        stores: &Stores,
        place: &Place,
        model: &Model,
    ) -> Result<MediaEncoders> {
        Ok(MediaEncoders::new(model, self.projectors(stores, place)?))
    }
}

impl MediaFile {
    /// Reads and decodes it.
    pub(crate) fn open(&self, sight: ImageSize) -> Result<Medium> {
        let medium = match self.kind {
            MediaKind::Image => image(&self.path).map(|image| Medium::Image(image, sight)),
            MediaKind::Audio => bytes(&self.path).and_then(|bytes| {
                Ok(Medium::Audio(Audio::decode(&bytes).map_err(RuntimeError::from)?))
            }),
            MediaKind::Video => frames::frames(&self.path).map(Medium::Video),
        };
        medium.with_context(|| self.name())
    }

    /// What it is called in messages.
    pub(crate) fn name(&self) -> String {
        self.path.display().to_string()
    }
}

/// What a file is by its name.
pub(crate) fn kind_of(path: &Path) -> Option<MediaKind> {
    let suffix = path.extension()?.to_str()?.to_ascii_lowercase();
    let among = |known: &[&str]| known.contains(&suffix.as_str());
    match () {
        () if among(&IMAGES) => Some(MediaKind::Image),
        () if among(&AUDIO) => Some(MediaKind::Audio),
        () => None,
    }
}

fn image(path: &Path) -> Result<Image> {
    Ok(Image::decode(&bytes(path)?).map_err(RuntimeError::from)?)
}

fn bytes(path: &Path) -> Result<Vec<u8>> {
    protect(path);
    let file = File::open(path)?;
    ensure!(!file.metadata()?.is_dir(), "this is a folder; only --video accepts a folder");
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    ensure!(
        bytes.len() as u64 <= MOST_BYTES,
        "the file is larger than 1 GiB: make it smaller first"
    );
    Ok(bytes)
}
