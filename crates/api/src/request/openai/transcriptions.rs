//! `POST /v1/audio/transcriptions`: a multipart form with a file, converted to a chat.

use rullama_chat::Message;

use super::super::conversation::{Builder, Pieces, Trailing};
use crate::{ApiError, Dialect, GenerationRequest, Input, MediaKind, media};

/// A field of a multipart form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormField {
    /// Its name.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// A request to transcribe speech.
#[derive(Debug, Clone, PartialEq)]
pub struct TranscriptionRequest {
    /// The chat that transcribes it.
    pub generation: GenerationRequest,
    /// The format of the response.
    pub format: TranscriptionFormat,
}

/// The format of a transcription response without streaming.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TranscriptionFormat {
    /// `{"text": "…"}`
    #[default]
    Json,
    /// The text only.
    Text,
}

/// Maximum size of an audio file in bytes.
const LARGEST_FILE: u64 = 25 << 20;

/// Parses the fields of the form.
pub fn transcriptions(form: Vec<FormField>) -> Result<TranscriptionRequest, ApiError> {
    let mut read = Form::default();
    for field in form {
        read.field(field)?;
    }
    let model = read.model.filter(|model| !model.is_empty()).ok_or(ApiError::ModelRequired)?;
    let file = read.file.ok_or_else(|| ApiError::Missing { field: "file".to_owned() })?;
    if file.len() as u64 > LARGEST_FILE {
        return Err(ApiError::TooLarge { limit: LARGEST_FILE });
    }
    let audio = media::expect(media::from_bytes(file, "file")?, MediaKind::Audio, "file")?;

    let mut builder = Builder::default();
    let mut pieces = Pieces::default();
    pieces.text(instruction(read.language.as_deref(), read.prompt.as_deref()), "");
    builder.media(&mut pieces, audio);
    builder.messages.push(Message {
        role: "user".to_owned(),
        content: pieces.into_content(),
        ..Message::default()
    });
    let chat = builder.finish(Vec::new(), Trailing::Turn)?;
    let mut generation = GenerationRequest::new(Dialect::OpenAi, model, Input::Chat(chat));
    generation.options.temperature = Some(read.temperature);
    generation.think = Some(false);
    generation.stream = read.stream;
    Ok(TranscriptionRequest { generation, format: read.format })
}

#[derive(Default)]
struct Form {
    file: Option<Vec<u8>>,
    model: Option<String>,
    language: Option<String>,
    prompt: Option<String>,
    format: TranscriptionFormat,
    temperature: f32,
    stream: bool,
}

impl Form {
    fn field(&mut self, FormField { name, bytes }: FormField) -> Result<(), ApiError> {
        if name == "file" {
            self.file = Some(bytes);
            return Ok(());
        }
        let Ok(text) = String::from_utf8(bytes) else {
            return Err(ApiError::field(name, "UTF-8 text"));
        };
        match name.as_str() {
            "model" => self.model = Some(text),
            "language" => self.language = Some(text).filter(|text| !text.is_empty()),
            "prompt" => self.prompt = Some(text).filter(|text| !text.is_empty()),
            "response_format" => self.format = format(&text)?,
            "temperature" => {
                let number = text.trim().parse().ok().filter(|t: &f32| t.is_finite() && *t >= 0.0);
                self.temperature =
                    number.ok_or_else(|| ApiError::field(name, "a number not below 0"))?;
            }
            "stream" => {
                self.stream = match text.trim() {
                    "true" | "1" => true,
                    "false" | "0" | "" => false,
                    _ => return Err(ApiError::field(name, "true or false")),
                };
            }
            "timestamp_granularities" | "timestamp_granularities[]" | "include" | "include[]" => {
                return Err(ApiError::unsupported(name, "leave it out: only the text is returned"));
            }
            _ => {}
        }
        Ok(())
    }
}

fn format(text: &str) -> Result<TranscriptionFormat, ApiError> {
    match text {
        "json" | "verbose_json" => Ok(TranscriptionFormat::Json),
        "text" => Ok(TranscriptionFormat::Text),
        _ => Err(ApiError::field("response_format", "\"json\", \"text\" or \"verbose_json\"")),
    }
}

fn instruction(language: Option<&str>, prompt: Option<&str>) -> String {
    let mut text = String::from("Transcribe the following speech segment");
    if let Some(language) = language {
        text.push_str(" in its original language (");
        text.push_str(language);
        text.push(')');
    }
    text.push_str(". Only output the transcription, with no newlines and no other text.");
    if let Some(prompt) = prompt {
        text.push_str("\nContext: ");
        text.push_str(prompt);
    }
    text.push('\n');
    text
}
