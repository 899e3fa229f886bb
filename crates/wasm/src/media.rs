//! Pictures and sounds of conversations: perceived once, then named by number.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
};

use rullama_runtime::{
    Model, RuntimeError, Senses,
    senses::{Kind, Medium, Perceived, Piece},
};
use rullama_source::ByteSource;

use crate::error::Failure;

/// What a model perceived.
#[derive(Clone)]
pub(crate) struct Memory(Rc<Inner>);

struct Inner {
    /// Out while a call works with them: calls wait for each other on the script's side.
    senses: RefCell<Option<Senses>>,
    known: RefCell<HashMap<u32, Perceived>>,
    next: Cell<u32>,
}

impl Memory {
    /// A model's senses; nothing is loaded yet.
    pub(crate) fn new(model: &Model) -> Self {
        let senses = RefCell::new(Some(Senses::new(model, Vec::new())));
        Self(Rc::new(Inner { senses, known: RefCell::default(), next: Cell::new(1) }))
    }

    /// The same with the towers of a projector file; what was perceived stays.
    pub(crate) fn attach(&self, model: &Model, projector: Rc<dyn ByteSource>) {
        *self.0.senses.borrow_mut() = Some(Senses::new(model, vec![projector]));
    }

    /// Frees the towers until something is to be perceived again.
    pub(crate) fn free_towers(&self) {
        if let Some(senses) = self.0.senses.borrow_mut().as_mut() {
            senses.forget();
        }
    }

    /// Perceives something; the number stands for it from now on.
    pub(crate) async fn perceive(
        &self,
        medium: Result<Medium, RuntimeError>,
    ) -> Result<u32, Failure> {
        let medium = medium?;
        let mut senses = self.0.senses.borrow_mut().take().ok_or(Failure::Busy)?;
        let perceived = senses.perceive(&medium).await;
        *self.0.senses.borrow_mut() = Some(senses);
        Ok(self.keep(perceived?))
    }

    /// A video of pictures that were perceived, each shown from so many seconds on; the number stands for it from now on.
    pub(crate) fn film(&self, pictures: &[u32], seconds: &[f64]) -> Result<u32, Failure> {
        let shown = self.recall(pictures)?.into_iter().zip(seconds);
        let pieces = shown.flat_map(|(picture, &seconds)| {
            // Whole seconds; a time that is no number is the start.
            let seconds = Some(seconds.max(0.0) as u64);
            picture.pieces.into_iter().map(move |piece| Piece { seconds, ..piece })
        });
        Ok(self.keep(Perceived { kind: Kind::Video, pieces: pieces.collect() }))
    }

    fn keep(&self, perceived: Perceived) -> u32 {
        let number = self.0.next.get();
        self.0.next.set(number.wrapping_add(1));
        self.0.known.borrow_mut().insert(number, perceived);
        number
    }

    /// What the numbers stand for.
    pub(crate) fn recall(&self, numbers: &[u32]) -> Result<Vec<Perceived>, Failure> {
        let known = self.0.known.borrow();
        let find = |number: &u32| known.get(number).cloned().ok_or(Failure::Forgotten(*number));
        numbers.iter().map(find).collect()
    }

    pub(crate) fn forget(&self, number: u32) {
        self.0.known.borrow_mut().remove(&number);
    }

    /// Bytes of the loaded towers on the GPU; nothing while they work.
    pub(crate) fn gpu_bytes(&self) -> u64 {
        self.0.senses.borrow().as_ref().map_or(0, Senses::gpu_bytes)
    }
}
