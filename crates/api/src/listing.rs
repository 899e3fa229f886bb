//! Lists of models in each API.

mod ollama;
mod openai;
mod parameters;
mod progress;

pub use ollama::{
    Details, ModelEntry, ProcessList, RunningModel, ShowReply, TagList, TensorEntry, Version,
};
pub use openai::{ModelList, ModelObject};
pub use parameters::parameters_text;
pub use progress::Progress;
