//! Replies of a model's sessions: one alone is generated in its session, several at once by a scheduler, in one pass for all.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    future::poll_fn,
    rc::Rc,
    task::{Poll, Waker},
};

use rullama_runtime::{
    Scheduler, Session,
    generate::{Completion, Generation},
    scheduler::{RequestId, SchedulerOptions, Update},
    session::BatchKey,
};
use wasm_bindgen_futures::spawn_local;

use crate::{reply::Reply, turns::Turns};

/// Most replies of one pass: up to these, each gets the tokens that it gets alone.
const MOST: usize = 8;

/// The replies of a model.
#[derive(Clone)]
pub(crate) struct Batch(Rc<Inner>);

struct Inner {
    turns: Turns,
    /// Replies that are not generated yet, in the order they came.
    waiting: RefCell<VecDeque<Job>>,
    /// Whether somebody generates.
    is_busy: Cell<bool>,
}

/// A reply to generate in a session.
struct Job {
    session: Session,
    completion: Completion,
    reply: Reply,
    outcome: Outcome,
}

/// A reply that a scheduler generates; it has the session.
struct Member {
    id: RequestId,
    reply: Reply,
    outcome: Outcome,
    /// Whether the script was called in this step, and whether it wants the end.
    was_told: bool,
    ends: bool,
}

/// Where a session and its reply arrive after the end.
#[derive(Clone, Default)]
struct Outcome(Rc<RefCell<Slot>>);

#[derive(Default)]
struct Slot {
    outcome: Option<(Session, Reply)>,
    waker: Option<Waker>,
}

impl Outcome {
    fn set(&self, session: Session, reply: Reply) {
        let waker = {
            let mut slot = self.0.borrow_mut();
            slot.outcome = Some((session, reply));
            slot.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    async fn get(self) -> (Session, Reply) {
        poll_fn(|context| {
            let mut slot = self.0.borrow_mut();
            match slot.outcome.take() {
                Some(outcome) => Poll::Ready(outcome),
                None => {
                    slot.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl Batch {
    /// No replies yet.
    pub(crate) fn new(turns: Turns) -> Self {
        Self(Rc::new(Inner { turns, waiting: RefCell::default(), is_busy: Cell::default() }))
    }

    /// Generates a reply; others may be generated at the same time.
    pub(crate) async fn run(
        &self,
        session: Session,
        completion: Completion,
        reply: Reply,
    ) -> (Session, Reply) {
        let outcome = Outcome::default();
        let job = Job { session, completion, reply, outcome: outcome.clone() };
        self.0.waiting.borrow_mut().push_back(job);
        if !self.0.is_busy.replace(true) {
            let batch = self.clone();
            spawn_local(Group { batch, most: MOST, scheduler: None, members: vec![] }.drive());
        }
        outcome.get().await
    }

    fn next(&self) -> Option<Job> {
        self.0.waiting.borrow_mut().pop_front()
    }

    fn put_first(&self, job: Job) {
        self.0.waiting.borrow_mut().push_front(job);
    }

    /// How many of the first that wait can be generated together with sessions like these.
    fn suiting(&self, key: &BatchKey) -> usize {
        let waiting = self.0.waiting.borrow();
        waiting.iter().take_while(|job| job.session.batch_key() == *key).count()
    }

    /// Ends those that wait and are not wanted any more.
    fn drop_unwanted(&self) {
        if self.0.waiting.borrow().is_empty() {
            return;
        }
        // Scripts are called without a borrow.
        let mut wanted = VecDeque::new();
        for mut job in self.0.waiting.take() {
            match job.reply.script.ends() {
                true => job.cancel(),
                false => wanted.push_back(job),
            }
        }
        let come = self.0.waiting.replace(wanted);
        self.0.waiting.borrow_mut().extend(come);
    }
}

impl Job {
    fn cancel(mut self) {
        self.completion.cancel();
        while let Some(event) = self.completion.event() {
            self.reply.event(event);
        }
        self.outcome.set(self.session, self.reply);
    }
}

impl Member {
    fn take(&mut self, update: Update) {
        match update {
            Update::Admitted { .. } => {}
            Update::Token(_) => self.reply.token(),
            Update::Event(event) => {
                self.was_told = true;
                self.ends |= self.reply.event(event);
            }
            Update::Failed(error) => self.reply.fail_with(&error),
        }
    }

    /// Whether the script wants the end.
    fn ends(&mut self, scheduler: &Scheduler) -> bool {
        if let Some(progress) = scheduler.progress(self.id).filter(|_| !self.reply.has_begun()) {
            self.ends |= self.reply.prefilled(progress.prefilled_tokens);
        }
        if !std::mem::take(&mut self.was_told) {
            self.ends |= self.reply.script.ends();
        }
        self.ends
    }
}

/// Generates what waits: a reply alone in its session, several with a scheduler, whose KV pool grows with them and is freed when all have ended.
struct Group {
    batch: Batch,
    /// Most replies at once: fewer where the device has no memory for more.
    most: usize,
    scheduler: Option<Scheduler>,
    members: Vec<Member>,
}

impl Group {
    async fn drive(mut self) {
        loop {
            if self.members.is_empty() {
                self.scheduler = None;
                let Some(job) = self.batch.next() else { break };
                let key = job.session.batch_key();
                if self.most < 2 || self.batch.suiting(&key) == 0 {
                    self.alone(job, &key).await;
                    continue;
                }
                let options = SchedulerOptions::for_sessions(&job.session, 1);
                match Scheduler::new(job.session.model(), &options) {
                    Ok(scheduler) => self.scheduler = Some(scheduler),
                    Err(_) => self.most = 1,
                }
                self.batch.put_first(job);
            }
            self.take_in().await;
            self.step().await;
            self.batch.0.turns.give().await;
            self.batch.drop_unwanted();
        }
        self.batch.0.is_busy.set(false);
    }

    /// Generates a reply in its session until it ends, or others come that can be generated together with it.
    async fn alone(&mut self, job: Job, key: &BatchKey) {
        let Job { mut session, completion, mut reply, outcome } = job;
        let mut generation = Generation::resume(&mut session, completion);
        let wanted = || {
            self.batch.drop_unwanted();
            self.most > 1 && self.batch.suiting(key) > 0
        };
        reply.generate(&mut generation, &wanted).await;
        let completion = generation.into_completion();
        match reply.is_over() {
            true => outcome.set(session, reply),
            false => self.batch.put_first(Job { session, completion, reply, outcome }),
        }
    }

    /// Takes in those that wait, as many as there is memory for.
    async fn take_in(&mut self) {
        let Some(scheduler) = &mut self.scheduler else { return };
        let key = scheduler.batch_key();
        let count = loop {
            let places = self.most.saturating_sub(self.members.len());
            let count = self.batch.suiting(&key).min(places);
            let wanted = (self.members.len() + count).next_power_of_two();
            if count == 0 || wanted <= scheduler.room() {
                break count;
            }
            match scheduler.make_room(wanted).await {
                Ok(true) => {}
                Ok(false) => self.most = (wanted / 2).max(scheduler.room()),
                // The replies find the same error.
                Err(_) => self.most = 1,
            }
        };
        // A scheduler for one has no room of its own.
        if scheduler.room() < 2 {
            return;
        }
        for Job { session, completion, reply, outcome } in
            (0..count).map_while(|_| self.batch.next())
        {
            let id = scheduler.join(session, completion);
            self.members.push(Member { id, reply, outcome, was_told: false, ends: false });
        }
    }

    /// A token of every reply, or a part of a prompt.
    async fn step(&mut self) {
        let Some(scheduler) = &mut self.scheduler else { return };
        let members = &mut self.members;
        let mut sink = |id, update| {
            if let Some(member) = members.iter_mut().find(|member| member.id == id) {
                member.take(update);
            }
        };
        let stepped = scheduler.step(&mut sink).await;
        for mut member in std::mem::take(members) {
            if !member.reply.is_over() && (member.ends(scheduler) || stepped.is_err()) {
                scheduler.cancel(member.id);
            }
            if let Err(error) = &stepped
                && !member.reply.is_over()
            {
                member.reply.fail_with(error);
            }
            if !member.reply.is_over() {
                members.push(member);
            } else if let Some(returned) = scheduler.returned(member.id) {
                member.reply.batched_tokens = returned.batched_tokens;
                member.outcome.set(returned.session, member.reply);
            }
        }
    }
}
