//! Gemma 4 on the user's own GPU: chat, streaming, images, audio, embeddings, LoRA adapters and their training.
//!
//! ```
//! use rullama::Model;
//!
//! let model = Model::open("demo")?; // or "gemma4:e2b" of Ollama's store, a GGUF file, a URL
//! let mut session = model.session()?;
//! let reply = session.send("What is 23 + 45?")?;
//! assert!(reply.text.contains("68"));
//! # Ok::<(), rullama::Error>(())
//! ```
//!
//! - [`Model::open`] loads a model, [`Model::session`] starts a conversation.
//! - [`Session::send`] waits for a reply, [`Session::stream`] is an iterator over its events.
//! - [`UserMessage`] attaches images, audio and videos to a message.
//! - [`Embedder`] computes embeddings, [`DiffusionModel`] runs DiffusionGemma.
//! - [`Training`] trains a LoRA adapter; [`OpenOptions::adapters`] and [`Session::set_adapters`] use one.
//!
//! Everything blocks the calling thread until the GPU is done; methods whose names end in `async` return futures instead.
//! Models and sessions are not `Send`: they stay on the thread that created them.
//!
//! This crate reads the environment variable `OLLAMA_MODELS` and the home folder to find Ollama's store ([`Stores`]), and the
//! clock for [`Timings`]; it writes only to files and folders that the caller names.

mod adapter;
mod device;
mod diffusion;
mod draft;
mod embedder;
mod error;
mod locate;
mod media;
mod message;
mod model;
mod options;
mod pipelines;
mod reply;
mod saved;
mod session;
mod train;
mod tuning;

pub use adapter::{AdapterFiles, AdapterSet, read_adapter, write_adapter};
pub use device::{DeviceChoice, OpenedDevice};
pub use diffusion::{DiffusionModel, DiffusionOptions, DiffusionReply};
pub use draft::{Draft, Drafting};
pub use embedder::{Embedder, similarity};
pub use error::{Error, SavedProblem};
pub use locate::{DEMO, Location, Stores, demo_gguf};
pub use media::{MediaFile, read_audio, read_image};
pub use message::UserMessage;
pub use model::{Model, projectors};
pub use options::{OnProgress, OpenOptions};
pub use reply::{Reply, ReplyStream, Timings};
pub use saved::SavedSession;
pub use session::{Format, Session, SessionOptions};
pub use train::{TrainOptions, Training};
pub use tuning::{MeasuredTuning, TuningKey, Tunings, changed_constants};

pub use rullama_adapter::Adapter;
pub use rullama_chat::{Content, Message, Part, Tool, ToolCall};
pub use rullama_engine::executor::Device;
pub use rullama_runtime::{
    audio::Audio,
    embedder::{EmbedOptions, EmbeddingPrompt, Embeddings},
    generate::{Done, Event, Finish},
    image::{Budget, Image},
    media::{Frame, ImageSize, MediaKind, Medium},
    model::{CacheType, Progress, TablePlace},
    options::SamplingOptions,
};
pub use rullama_train::{Event as TrainEvent, ScheduleShape};
