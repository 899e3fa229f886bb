//! Embeddings of texts.

use std::ops::ControlFlow;

use pollster::block_on;
use rullama_runtime::embedder::{EmbedOptions, EmbeddingPrompt, Embeddings};

use crate::{
    error::Error,
    options::{OnProgress, OpenOptions},
};

/// An embedding model (EmbeddingGemma) whose weights are on a device.
///
/// ```
/// use rullama::{EmbedOptions, Embedder};
///
/// let embedder = Embedder::open("../../goldens/embedding/first-BF16.gguf")?;
/// let embeddings = embedder.embed(&["a cat", "a dog"], EmbedOptions::default())?;
/// assert_eq!(embeddings.vectors.len(), 2);
/// # Ok::<(), rullama::Error>(())
/// ```
#[derive(Debug)]
pub struct Embedder(rullama_runtime::Embedder);

impl Embedder {
    /// Opens an embedding model: a name of Ollama's store, the path of a GGUF file, or a URL.
    ///
    /// # Errors
    /// If the model is not found, is not an embedding model, or does not fit on the device.
    pub fn open(name: &str) -> Result<Self, Error> {
        let mut ignore_progress = |_| ControlFlow::Continue(());
        Self::open_with(name, &OpenOptions::default(), &mut ignore_progress)
    }

    /// Opens an embedding model with these options; `progress` gets loading progress and may cancel.
    ///
    /// # Errors
    /// As [`Self::open`], or if loading was cancelled.
    pub fn open_with(
        name: &str,
        options: &OpenOptions,
        progress: OnProgress<'_>,
    ) -> Result<Self, Error> {
        let gguf = options.stores.find(name)?.open()?;
        let device = options.open_device()?.device;
        Ok(Self(block_on(rullama_runtime::Embedder::load(&gguf, device, progress))?))
    }

    /// Embeddings of texts, each of unit length.
    ///
    /// # Errors
    /// If the model has fewer dimensions than requested, or the device fails.
    pub fn embed(&self, texts: &[&str], options: EmbedOptions) -> Result<Embeddings, Error> {
        block_on(self.embed_async(texts, options))
    }

    /// Async variant of [`Self::embed`].
    ///
    /// # Errors
    /// As [`Self::embed`].
    pub async fn embed_async(
        &self,
        texts: &[&str],
        options: EmbedOptions,
    ) -> Result<Embeddings, Error> {
        Ok(self.0.embed(texts, options).await?)
    }

    /// The embedding of a search query, to be compared with those of [`Self::embed_documents`].
    ///
    /// ```
    /// use rullama::{Embedder, similarity};
    ///
    /// let embedder = Embedder::open("../../goldens/embedding/first-BF16.gguf")?;
    /// let documents = embedder.embed_documents(&["A cat sleeps.", "Prices rise."])?;
    /// let query = embedder.embed_query("pets")?;
    /// let best = documents.iter().map(|document| similarity(&query, document)).fold(f32::MIN, f32::max);
    /// assert!(best <= 1.001);
    /// # Ok::<(), rullama::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the device fails.
    pub fn embed_query(&self, text: &str) -> Result<Vec<f32>, Error> {
        let options = EmbedOptions { prompt: EmbeddingPrompt::Query, dimensions: None };
        Ok(self.embed(&[text], options)?.vectors.pop().unwrap_or_default())
    }

    /// The embeddings of documents, to be found by queries.
    ///
    /// # Errors
    /// If the device fails.
    pub fn embed_documents(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
        let options = EmbedOptions { prompt: EmbeddingPrompt::Document, dimensions: None };
        Ok(self.embed(texts, options)?.vectors)
    }

    /// The underlying embedder of the crate `rullama-runtime`.
    pub fn runtime(&self) -> &rullama_runtime::Embedder {
        &self.0
    }
}

/// The cosine similarity of two unit vectors, from -1 to 1.
///
/// ```
/// assert_eq!(rullama::similarity(&[0.0, 1.0], &[0.0, 1.0]), 1.0);
/// assert_eq!(rullama::similarity(&[0.0, 1.0], &[1.0, 0.0]), 0.0);
/// ```
pub fn similarity(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
