//! Images and audio of conversations: encoded once, then referred to by number.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
};

use rullama_runtime::{
    MediaEncoders, Model, RuntimeError,
    media::{EncodedMedia, MediaKind, Medium, Piece},
};
use rullama_source::ByteSource;

use crate::error::Failure;

/// A model's encoders and the media they encoded.
#[derive(Clone)]
pub(crate) struct MediaCache(Rc<Inner>);

struct Inner {
    /// `None` while a call uses them; the client queues calls.
    encoders: RefCell<Option<MediaEncoders>>,
    known: RefCell<HashMap<u32, EncodedMedia>>,
    next: Cell<u32>,
}

impl MediaCache {
    /// A model's encoders, not loaded yet.
    pub(crate) fn new(model: &Model) -> Self {
        let encoders = RefCell::new(Some(MediaEncoders::new(model, Vec::new())));
        Self(Rc::new(Inner { encoders, known: RefCell::default(), next: Cell::new(1) }))
    }

    /// Uses the encoders of a projector file; encoded media are kept.
    pub(crate) fn attach(&self, model: &Model, projector: Rc<dyn ByteSource>) {
        *self.0.encoders.borrow_mut() = Some(MediaEncoders::new(model, vec![projector]));
    }

    /// Unloads the encoders until they are needed again.
    pub(crate) fn free_encoders(&self) {
        if let Some(encoders) = self.0.encoders.borrow_mut().as_mut() {
            encoders.unload();
        }
    }

    /// Encodes a medium and returns its number.
    pub(crate) async fn encode(
        &self,
        medium: Result<Medium, RuntimeError>,
    ) -> Result<u32, Failure> {
        let medium = medium?;
        let mut encoders = self.0.encoders.borrow_mut().take().ok_or(Failure::Busy)?;
        let encoded = encoders.encode(&medium).await;
        *self.0.encoders.borrow_mut() = Some(encoders);
        Ok(self.keep(encoded?))
    }

    /// A video of encoded images, each shown from the given second on; returns its number.
    pub(crate) fn join_video(&self, images: &[u32], seconds: &[f64]) -> Result<u32, Failure> {
        let shown = self.get(images)?.into_iter().zip(seconds);
        let pieces = shown.flat_map(|(image, &seconds)| {
            // Whole seconds; NaN becomes 0.
            let seconds = Some(seconds.max(0.0) as u64);
            image.pieces.into_iter().map(move |piece| Piece { seconds, ..piece })
        });
        Ok(self.keep(EncodedMedia { kind: MediaKind::Video, pieces: pieces.collect() }))
    }

    fn keep(&self, encoded: EncodedMedia) -> u32 {
        let number = self.0.next.get();
        self.0.next.set(number.wrapping_add(1));
        self.0.known.borrow_mut().insert(number, encoded);
        number
    }

    /// The encoded media with these numbers.
    pub(crate) fn get(&self, numbers: &[u32]) -> Result<Vec<EncodedMedia>, Failure> {
        let known = self.0.known.borrow();
        let find = |number: &u32| known.get(number).cloned().ok_or(Failure::NoMedium(*number));
        numbers.iter().map(find).collect()
    }

    pub(crate) fn forget(&self, number: u32) {
        self.0.known.borrow_mut().remove(&number);
    }

    /// Bytes of the loaded encoders on the GPU; 0 while they run.
    pub(crate) fn gpu_bytes(&self) -> u64 {
        self.0.encoders.borrow().as_ref().map_or(0, MediaEncoders::gpu_bytes)
    }
}
