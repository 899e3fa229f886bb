//! Describes an image or audio clip.
//!
//! ```sh
//! cargo run --release --example describe_image -- gemma4:e2b photo.jpg "What is this?"
//! ```
#![expect(clippy::print_stdout, reason = "it is a program")]

use anyhow::Context;
use rullama::{ImageSize, MediaFile, Model, UserMessage};

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let name = args.next().context("usage: describe_image MODEL FILE [QUESTION]")?;
    let path = args.next().context("usage: describe_image MODEL FILE [QUESTION]")?;
    let question = args.next().unwrap_or_else(|| "What is in the image?".into());
    let file = MediaFile::guess(path).context("not an image or audio file")?;
    let message = UserMessage::new(question).file(&file, ImageSize::default())?;
    let reply = Model::open(&name)?.session()?.send(message)?;
    println!("{}", reply.text);
    Ok(())
}
