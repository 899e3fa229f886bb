//! Images, audio and videos on the command line: flags and files.

use std::path::PathBuf;

use anyhow::Result;
use clap::{
    Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, builder::PathBufValueParser,
};
use rullama::{Budget, ImageSize, Location, MediaFile, MediaKind, Medium};
use rullama_runtime::{MediaEncoders, Model};

use crate::{locate::Stores, output_file::protect};

const HEADING: &str = "Images and audio";

/// The media of a command, in the order given.
#[derive(Debug, Clone)]
pub(crate) struct MediaArgs {
    pub(crate) files: Vec<MediaFile>,
    /// The projector file with the encoders, if given.
    pub(crate) mmproj: Option<String>,
    /// The size at which images are encoded.
    pub(crate) size: ImageSize,
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

/// Implemented by hand, because derived arguments lose the order of different flags.
impl FromArgMatches for MediaArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut files = Vec::new();
        for (kind, flag, _) in FLAGS {
            let indices = matches.indices_of(flag).into_iter().flatten();
            let paths = matches.get_many::<PathBuf>(flag).into_iter().flatten();
            files.extend(indices.zip(paths).map(|(index, path)| (index, kind, path.clone())));
        }
        files.sort_by_key(|(index, ..)| *index);
        Ok(Self {
            files: files.into_iter().map(|(_, kind, path)| MediaFile { kind, path }).collect(),
            mmproj: matches.get_one::<String>("mmproj").cloned(),
            size: matches.get_one("image-budget").copied().unwrap_or_default(),
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
        let all = media.into_iter().chain([mmproj, budget.value_parser(image_size)]);
        command.args(all.map(|arg| arg.help_heading(HEADING)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn image_size(text: &str) -> Result<ImageSize, String> {
    if text == "native" {
        return Ok(ImageSize::Native);
    }
    let tokens: u32 = text.parse().map_err(|_| "give a number of tokens, or `native`")?;
    Budget::try_from(tokens).map(ImageSize::Fill).map_err(|error| error.to_string())
}

impl MediaArgs {
    /// The encoders of a model.
    pub(crate) fn encoders(
        &self,
        stores: &Stores,
        location: &Location,
        model: &Model,
    ) -> Result<MediaEncoders> {
        if let Some(name) = &self.mmproj {
            stores.find(name)?;
        }
        let projectors = rullama::projectors(&stores.0, location, self.mmproj.as_deref())?;
        Ok(MediaEncoders::new(model, projectors))
    }

    /// Reads a file that no output of the command may replace.
    pub(crate) fn read(&self, file: &MediaFile) -> Result<Medium> {
        protect(&file.path);
        Ok(file.read(self.size)?)
    }
}
