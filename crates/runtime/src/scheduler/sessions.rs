//! Requests that continue sessions: their KV caches are copied to the pool when they are admitted, and what has been added is copied back at
//! their end. Passes cut prompts as sessions do, so that a session's tokens are the same with and without a scheduler.

use std::{ops::Range, rc::Rc};

use rullama_engine::{executor::Memory, gpu::RowSpan, graph::Type};
use rullama_models::decoder::Kind;

use super::{
    Content, RequestId, Running, Scheduler, SchedulerOptions, Sink, Update, Waiting,
    faults::is_out_of_memory, passes::Passes,
};
use crate::{
    error::RuntimeError,
    generate::Completion,
    kv_pool::{KINDS, SequencePages},
    session::{BatchKey, Session},
};

/// The session that a request continues.
pub(super) struct Borrowed {
    pub(super) session: Session,
    /// Whether the pool has a copy of its caches.
    pub(super) is_copied: bool,
    /// Tokens that were computed in one pass with those of other requests.
    pub(super) batched_tokens: usize,
}

/// A session whose request has ended.
#[derive(Debug)]
pub struct Returned {
    /// The session, with the tokens of the completion.
    pub session: Session,
    /// Tokens of the completion that were computed in one pass with those of other requests.
    pub batched_tokens: usize,
}

impl SchedulerOptions {
    /// For so many sessions like this one, at their full length.
    pub fn for_sessions(session: &Session, sequences: usize) -> Self {
        let options = session.options();
        let usual = Self::default();
        Self {
            context: Some(session.context()),
            cache: options.cache,
            block: options.block,
            chunk: options.chunk,
            suppress: options.suppress.clone(),
            in_flight: options.in_flight,
            // Sessions keep what they have computed themselves.
            keep_prefixes: false,
            ..usual
        }
        .with_sequences(session.context(), sequences)
    }

    /// Room for so many sequences of `context` tokens; each takes whole pages.
    fn with_sequences(self, context: usize, sequences: usize) -> Self {
        let page = self.page.clamp(1, context.max(1));
        let pool = context.next_multiple_of(page).saturating_mul(sequences);
        Self { pool: Some(pool), sequences, ..self }
    }
}

impl Scheduler {
    /// What sessions of this model have that [`Self::join`] takes.
    pub fn batch_key(&self) -> BatchKey {
        self.passes.batch_key()
    }

    /// Requests that can run at once at their full length.
    pub fn room(&self) -> usize {
        self.passes.shape().slots
    }

    /// Continues a completion in a session. It may have begun there; its tokens are those that the session alone would generate. At its end
    /// [`Self::returned`] has the session.
    pub fn join(&mut self, mut session: Session, completion: Completion) -> RequestId {
        let id = self.next_id();
        let is_other = !Rc::ptr_eq(&self.model().0, &session.model().0);
        if is_other || session.batch_key() != self.batch_key() {
            self.updates.push((id, Update::failed(RuntimeError::OtherSessions)));
            self.returned.push((id, Returned { session, batched_tokens: 0 }));
            return id;
        }
        session.pause();
        let tokens = session.tokens().to_vec();
        let soft = session.soft().clone();
        let media = soft.digests(&tokens);
        let most = self.needs(completion.prompt_tokens(), completion.num_predict());
        let most = most.max(tokens.len());
        let adapters = session.adapters().cloned();
        let borrowed = Some(Box::new(Borrowed { session, is_copied: false, batched_tokens: 0 }));
        let content = Content { tokens, soft, media };
        self.queue.push_back(Waiting { id, content, most, completion, adapters, borrowed });
        id
    }

    /// The session of a request that has ended, or failed.
    pub fn returned(&mut self, id: RequestId) -> Option<Returned> {
        let index = self.returned.iter().position(|(returned, _)| *returned == id)?;
        Some(self.returned.swap_remove(index).1)
    }

    /// Makes room for so many sessions at their full length and allocates it; those that run continue afterwards. False, and the room is as
    /// before, if the device has no memory for it or a request without a session runs.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn make_room(&mut self, sequences: usize) -> Result<bool, RuntimeError> {
        if self.running.iter().any(|running| running.borrowed.is_none()) {
            return Ok(false);
        }
        let before = self.options.clone();
        let wanted = before.clone().with_sequences(self.context(), sequences);
        let model = self.model().clone();
        let (passes, passes_before) =
            (Passes::new(&model, &wanted)?, Passes::new(&model, &before)?);
        for mut running in std::mem::take(&mut self.running).into_iter().rev() {
            self.copy_back(&mut running);
            self.queue.push_front(running.into_waiting().0);
        }
        // The old pool is freed before the new one is allocated.
        self.use_passes(passes);
        self.options = wanted;
        match self.passes.create_pool().await {
            Ok(()) => Ok(true),
            Err(error) if is_out_of_memory(&error) => {
                self.use_passes(passes_before);
                self.options = before;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Copies the caches of sessions that were admitted to the pool.
    pub(super) async fn copy_sessions(&mut self, sink: &mut Sink<'_>) -> Result<(), RuntimeError> {
        let missing = |running: &Running| {
            running.borrowed.as_ref().is_some_and(|borrowed| !borrowed.is_copied)
        };
        while let Some(index) = self.running.iter().position(missing) {
            match self.copy_session(index).await {
                Ok(()) => {}
                Err(error) if is_out_of_memory(&error) && self.shrink_pool(index) => {}
                Err(error) => self.fail(&[self.running[index].id], error, sink)?,
            }
        }
        Ok(())
    }

    async fn copy_session(&mut self, index: usize) -> Result<(), RuntimeError> {
        self.passes.create_pool().await?;
        let Running { borrowed, pages, filled, .. } = &mut self.running[index];
        let Some(borrowed) = borrowed else { return Ok(()) };
        borrowed.session.create_caches().await?;
        self.pool.cover(pages, *filled)?;
        // The next token of a sliding layer sees the window before it.
        let seen = (*filled + 1).saturating_sub(self.passes.model().config().window);
        let copies = Copies::new(borrowed, pages, &self.passes, [0..*filled, seen..*filled]);
        copies.run(borrowed.session.memory(), self.passes.memory(), false);
        borrowed.is_copied = true;
        Ok(())
    }

    /// Gives a request's session the tokens and caches that the scheduler has computed for it.
    pub(super) fn copy_back(&mut self, running: &mut Running) {
        let Running { borrowed: Some(borrowed), pages, content, filled, .. } = running else {
            return;
        };
        if !borrowed.is_copied {
            return;
        }
        let (start, end) = (borrowed.session.cached(), *filled);
        let oldest = pages.oldest(self.passes.shape().page).min(end);
        let added = [start..end, start.max(oldest)..end];
        let copies = Copies::new(borrowed, pages, &self.passes, added);
        copies.run(self.passes.memory(), borrowed.session.memory(), true);
        borrowed.session.resume(content.tokens.clone(), end, oldest);
        borrowed.is_copied = false;
    }

    /// Keeps the session of a request that has ended.
    pub(super) fn give_back(&mut self, id: RequestId, borrowed: Option<Box<Borrowed>>) {
        if let Some(borrowed) = borrowed {
            let Borrowed { session, batched_tokens, .. } = *borrowed;
            self.returned.push((id, Returned { session, batched_tokens }));
        }
    }
}

/// Which rows of a session's caches are which rows of the pool, for each kind of layers.
struct Copies {
    states: Vec<[(String, Kind, Type); 2]>,
    spans: [Vec<RowSpan>; 2],
}

impl Copies {
    /// The rows of some positions: of global layers, and of sliding ones.
    fn new(
        borrowed: &Borrowed,
        pages: &SequencePages,
        passes: &Passes,
        positions: [Range<usize>; 2],
    ) -> Self {
        let (session, page) = (&borrowed.session, passes.shape().page);
        let both = session.kv_caches().into_iter().zip(passes.kv_caches());
        let states = both.map(|(session, pool)| [session, pool]).collect();
        let mut positions = positions.into_iter();
        let spans = [0, 1].map(|kind| {
            let rows = positions.next().into_iter().flatten().map(|position| {
                (session.slot(KINDS[kind], position), pages.slot(kind, position, page))
            });
            spans(rows)
        });
        Self { states, spans }
    }

    /// Copies from the session to the pool, or back.
    fn run(mut self, from: &Memory, to: &Memory, is_back: bool) {
        if is_back {
            for span in self.spans.iter_mut().flatten() {
                std::mem::swap(&mut span.from, &mut span.to);
            }
        }
        let copies = self.states.iter().map(|[session, pool]| {
            let (from, to) = if is_back { (pool, session) } else { (session, pool) };
            let spans = if from.1 == Kind::Global { &self.spans[0] } else { &self.spans[1] };
            (from.0.as_str(), &from.2, &to.2, spans.as_slice())
        });
        from.copy_rows(to, copies);
    }
}

/// Pairs of rows, adjacent ones in one span.
fn spans(rows: impl Iterator<Item = (usize, usize)>) -> Vec<RowSpan> {
    let mut spans: Vec<RowSpan> = Vec::new();
    for (from, to) in rows {
        match spans.last_mut() {
            Some(last) if (last.from + last.count, last.to + last.count) == (from, to) => {
                last.count += 1;
            }
            _ => spans.push(RowSpan { from, to, count: 1 }),
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::{RowSpan, spans};

    #[test]
    fn adjacent_rows_are_copied_at_once() {
        // A ring of 6 slots and pages of 4: 2, 5 and 0.
        let page = [2, 5, 0];
        let rows = (3..9).map(|position| (position % 6, page[position / 4] * 4 + position % 4));
        let span = |from, to, count| RowSpan { from, to, count };
        assert_eq!(spans(rows), [span(3, 11, 1), span(4, 20, 2), span(0, 22, 2), span(2, 0, 1)]);
    }
}
