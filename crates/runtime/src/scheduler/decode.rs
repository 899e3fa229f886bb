//! Decode passes: a token for every request whose prompt is done. As in a session, passes are queued before the tokens of earlier ones are read:
//! those that the device chooses stay there for the next pass.

use rullama_engine::{cpu::Data, executor::Results};
use rullama_models::decoder::PassOutput;

use super::{
    RequestId, Scheduler, Sink, Update,
    adapters::Factors,
    drafts::accepted,
    faults::{guarded, is_out_of_memory},
    passes::{GREEDY, INVARIANT_ROWS, LastToken, Row},
    running::Running,
};
use crate::{error::RuntimeError, generate::NextToken, session::DeviceSampling};

/// The passes that were queued in one step.
pub(super) struct Round(Vec<Queued>);

/// A pass and what arrives.
struct Queued {
    /// The requests of its rows; with drafts, the one of all rows.
    ids: Vec<RequestId>,
    drafts: Vec<u32>,
    results: Results,
}

/// Requests whose rows can go through one pass: those that read alike many keys, and whose tokens are chosen on the same side. Those that the host
/// chooses come first: their logits arrive while the others are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    on_device: bool,
    factors: Factors,
    is_short: bool,
}

/// A request, and how its next token is chosen on the device.
type Member = (RequestId, Option<DeviceSampling>);

/// Requests by pass, in the order of passes. A few: a map would take more code than it saves time.
#[derive(Debug, Default)]
struct Groups(Vec<(Group, Vec<Member>)>);

impl Groups {
    fn members(&self, group: Group) -> &[Member] {
        self.0.iter().find(|(known, _)| *known == group).map_or(&[], |(_, members)| members)
    }

    fn add(&mut self, group: Group, members: &[Member]) {
        let found = self.0.binary_search_by_key(&group, |(known, _)| *known);
        let index = found.unwrap_or_else(|index| {
            self.0.insert(index, (group, Vec::new()));
            index
        });
        self.0[index].1.extend(members);
    }
}

impl Scheduler {
    /// Queues passes and takes the tokens of earlier ones; false if nothing was waited for.
    pub(super) async fn decode(&mut self, sink: &mut Sink<'_>) -> Result<bool, RuntimeError> {
        let queued = self.queue_round(sink).await?;
        let full = self.rounds.len() >= self.most_in_flight();
        let oldest = (full || !queued).then(|| self.rounds.pop_front()).flatten();
        let waited = oldest.is_some();
        if let Some(round) = oldest {
            self.take_round(round, sink).await?;
        }
        self.tell(sink)?;
        Ok(waited)
    }

    /// Queues a pass for each group of requests; false if no request is ready for one.
    async fn queue_round(&mut self, sink: &mut Sink<'_>) -> Result<bool, RuntimeError> {
        self.passes.share_adapters().await?;
        let mut round = Vec::new();
        for (group, members) in self.groups(sink)?.0 {
            let mut left: Vec<Vec<Member>> =
                members.chunks(self.passes.most_rows()).rev().map(<[Member]>::to_vec).collect();
            while let Some(members) = left.pop() {
                let ids: Vec<RequestId> = members.iter().map(|(id, _)| *id).collect();
                let drafts = match members[..] {
                    [(id, sampling)] => self.drafts(id, sampling),
                    _ => Vec::new(),
                };
                match self.queue_pass(group, &members, &drafts).await {
                    Ok(results) => {
                        self.count_in_flight(&members, drafts.is_empty());
                        self.decode_passes += 1;
                        round.push(Queued { ids, drafts, results });
                    }
                    Err(error) if is_out_of_memory(&error) && !drafts.is_empty() => {
                        self.options.drafts = 0;
                        left.push(members);
                    }
                    Err(error) if is_out_of_memory(&error) && members.len() > 1 => {
                        // The device may have room for fewer rows.
                        let half = self.passes.fewer_rows(members.len());
                        left.extend(members.chunks(half).rev().map(<[Member]>::to_vec));
                    }
                    Err(error) => self.fail(&ids, error, sink)?,
                }
            }
        }
        let queued = !round.is_empty();
        if queued {
            self.rounds.push_back(Round(round));
        }
        Ok(queued)
    }

    /// Requests that can take a token now, by pass.
    fn groups(&mut self, sink: &mut Sink<'_>) -> Result<Groups, RuntimeError> {
        let (context, in_flight) = (self.context(), self.most_in_flight());
        let mut groups = Groups::default();
        let mut panicked = Vec::new();
        for running in &mut self.running {
            let sampling = match guarded(|| Ok(next(running, context, in_flight))) {
                Ok(Some(sampling)) => sampling,
                Ok(None) => continue,
                Err(error) => {
                    panicked.push((running.id, error));
                    continue;
                }
            };
            let on_device = sampling.is_some();
            let is_short = on_device && self.passes.is_short(running.position());
            let (factors, _) = self.passes.place(running.adapter);
            let group = Group { on_device, factors, is_short };
            groups.add(group, &[(running.id, sampling)]);
        }
        for (id, error) in panicked {
            self.fail(&[id], error, sink)?;
        }
        if self.passes.mixes_plain_rows() {
            groups = mixed(&groups);
        }
        Ok(if self.passes.is_batch_invariant() { groups } else { merged(&groups) })
    }

    fn find(&mut self, id: RequestId) -> Option<&mut Running> {
        self.running.iter_mut().find(|running| running.id == id)
    }

    async fn queue_pass(
        &mut self,
        group: Group,
        members: &[Member],
        drafts: &[u32],
    ) -> Result<Results, RuntimeError> {
        for (id, _) in members {
            if let Some(running) = self.running.iter_mut().find(|running| running.id == *id) {
                let end = running.position() + 1 + drafts.len();
                self.pool.cover(&mut running.pages, end)?;
            }
        }
        let row = |(id, sampling): &Member| {
            let running = self.running.iter().find(|running| running.id == *id)?;
            let (draw, seed) = match sampling {
                Some(DeviceSampling::Drawn { draw, seed }) => (*draw, *seed),
                Some(DeviceSampling::Greedy) | None => (GREEDY, 0),
            };
            let token = match running.in_flight {
                0 => LastToken::Known(running.content.tokens.last().copied().unwrap_or(0)),
                _ => LastToken::OnDevice,
            };
            let (position, pages, slot) = (running.position(), &running.pages, running.slot);
            let (_, adapter) = self.passes.place(running.adapter);
            Some(Row { token, position, pages, draw, seed, slot, adapter })
        };
        let mut rows: Vec<Row<'_>> = members.iter().filter_map(row).collect();
        if let [last] = rows[..] {
            let draft = |(i, id): (usize, &u32)| Row {
                token: LastToken::Known(*id),
                position: last.position + 1 + i,
                ..last
            };
            rows.extend(drafts.iter().enumerate().map(draft));
        }
        let all_greedy =
            members.iter().all(|(_, sampling)| *sampling == Some(DeviceSampling::Greedy));
        let output = match (group.on_device, all_greedy) {
            (false, _) => PassOutput::LogitsEach,
            (true, true) => PassOutput::GreedyEach,
            (true, false) => PassOutput::DrawnEach,
        };
        self.passes.decode((group.factors, output, group.is_short), &rows).await
    }

    /// Another pass is in flight for some requests. Nothing follows one with drafts before it is known which of them are accepted.
    fn count_in_flight(&mut self, members: &[Member], may_follow: bool) {
        for (id, sampling) in members {
            if let Some(running) = self.find(*id) {
                running.in_flight += 1;
                running.sampling = sampling.filter(|_| may_follow);
            }
        }
    }

    async fn take_round(&mut self, round: Round, sink: &mut Sink<'_>) -> Result<(), RuntimeError> {
        for Queued { ids, drafts, results } in round.0 {
            match results.wait().await {
                Ok(data) => self.take(&ids, &drafts, data.last(), sink)?,
                Err(error) => self.fail(&ids, error.into(), sink)?,
            }
        }
        Ok(())
    }

    /// Gives the rows of a pass what came out of it.
    fn take(
        &mut self,
        ids: &[RequestId],
        drafts: &[u32],
        data: Option<&Data>,
        sink: &mut Sink<'_>,
    ) -> Result<(), RuntimeError> {
        let width = self.model().config().vocabulary;
        for (row, id) in ids.iter().enumerate() {
            // It may have ended since the pass was queued.
            let Some(running) = self.find(*id) else { continue };
            if running.completion.ended() {
                continue;
            }
            running.in_flight -= 1;
            if let Some(borrowed) = running.borrowed.as_mut().filter(|_| ids.len() > 1) {
                borrowed.batched_tokens += 1;
            }
            let chosen = match data {
                Some(Data::U32(tokens)) => {
                    Ok(tokens[row..row + accepted(drafts, &tokens[row..])].to_vec())
                }
                Some(Data::F32(logits)) => {
                    let logits = &logits[row * width..][..width];
                    guarded(|| running.completion.choose(logits).map(|token| vec![token]))
                }
                other => panic!("a pass makes tokens or logits, not {other:?}"),
            };
            let taken = chosen.and_then(|tokens| {
                for token in tokens {
                    if running.completion.ended() {
                        break;
                    }
                    running.filled += 1;
                    running.content.tokens.push(token);
                    sink(*id, Update::Token(token));
                    guarded(|| running.completion.accept(token))?;
                }
                Ok(())
            });
            if let Err(error) = taken {
                self.fail(&[*id], error, sink)?;
            }
        }
        Ok(())
    }

    /// Tells the events of all requests and removes those that have ended.
    fn tell(&mut self, sink: &mut Sink<'_>) -> Result<(), RuntimeError> {
        let mut panicked = Vec::new();
        for running in &mut self.running {
            loop {
                match guarded(|| Ok(running.completion.event())) {
                    Ok(Some(event)) => sink(running.id, Update::Event(event)),
                    Ok(None) => break,
                    Err(error) => {
                        panicked.push((running.id, error));
                        break;
                    }
                }
            }
        }
        for (id, error) in panicked {
            self.fail(&[id], error, sink)?;
        }
        while let Some(index) = self.running.iter().position(|running| running.completion.ended()) {
            self.remove(index);
        }
        Ok(())
    }
}

/// How a request's next token is chosen, if it can take one now: on the device, or (`Some(None)`) on the host.
fn next(
    running: &mut Running,
    context: usize,
    most_in_flight: usize,
) -> Option<Option<DeviceSampling>> {
    if !running.is_prefilled() {
        return None;
    }
    if running.in_flight > 0 {
        // The tokens in flight may end it; what is computed after its end is dropped.
        let sampling = running.sampling?;
        let left = running.completion.remaining() > running.in_flight;
        let room = running.position() + 1 < context;
        return (running.in_flight < most_in_flight && left && room).then_some(Some(sampling));
    }
    match running.completion.next_token()? {
        NextToken::Ended => None,
        _ if running.content.tokens.len() >= context => {
            running.completion.context_full();
            None
        }
        NextToken::FromDevice(sampling) => Some(Some(sampling)),
        NextToken::FromLogits => Some(None),
    }
}

impl Group {
    /// The same for requests of any length.
    fn of_any_length(self) -> Self {
        Self { is_short: false, ..self }
    }
}

/// Requests without adapters share the passes of those that have some: each row reads the factors of its own slot, or none.
fn mixed(groups: &Groups) -> Groups {
    let shared = |group: Group| {
        let alike =
            |other: &Group| (other.on_device, other.is_short) == (group.on_device, group.is_short);
        let mut pools = groups.0.iter().map(|(other, _)| *other).filter(alike);
        let pool = pools.find(|other| matches!(other.factors, Factors::Pool(_)));
        pool.filter(|_| group.factors == Factors::None).unwrap_or(group)
    };
    let mut mixed = Groups::default();
    for (group, members) in &groups.0 {
        mixed.add(shared(*group), members);
    }
    mixed
}

/// Where passes of more than 8 rows need not be batch-invariant: short and long contexts that fill such a pass together share it, so that weights
/// are read once for both.
fn merged(groups: &Groups) -> Groups {
    let rows = |group: Group| groups.members(group).len();
    let shared = |group: Group| {
        let long = group.of_any_length();
        let all = rows(long) + rows(Group { is_short: true, ..long });
        if rows(long) > 0 && all > INVARIANT_ROWS { long } else { group }
    };
    let mut merged = Groups::default();
    for (group, members) in &groups.0 {
        merged.add(shared(*group), members);
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_contexts_share_passes_of_more_than_eight_rows() {
        let group =
            |pool, is_short| Group { on_device: true, factors: Factors::Pool(pool), is_short };
        for (short, long, wanted) in [
            (4, 4, [4, 4]),
            (8, 0, [8, 0]),
            (12, 0, [12, 0]),
            (0, 12, [0, 12]),
            (1, 8, [0, 9]),
            (8, 1, [0, 9]),
        ] {
            let of = |count: u64| (0..count).map(|id| (RequestId(id), None)).collect::<Vec<_>>();
            // Rows with the adapters of another pool fill other passes.
            let all =
                [(group(0, true), of(short)), (group(1, true), of(3)), (group(0, false), of(long))];
            let mut groups = Groups::default();
            for (group, members) in all.iter().filter(|(_, members)| !members.is_empty()) {
                groups.add(*group, members);
            }
            let merged = merged(&groups);
            let rows = |group| merged.members(group).len();
            assert_eq!([rows(group(0, true)), rows(group(0, false))], wanted, "{short} and {long}");
            assert_eq!(rows(group(1, true)), 3);
        }
    }

    #[test]
    fn requests_without_adapters_join_those_with_some() {
        let group = |factors, is_short| Group { on_device: true, factors, is_short };
        let of =
            |ids: std::ops::Range<u64>| ids.map(|id| (RequestId(id), None)).collect::<Vec<_>>();
        let mut groups = Groups::default();
        groups.add(group(Factors::None, true), &of(0..2));
        groups.add(group(Factors::None, false), &of(2..3));
        groups.add(group(Factors::Pool(7), true), &of(3..6));
        groups.add(group(Factors::Adapter(9), false), &of(6..7));
        let mixed = mixed(&groups);
        let rows = |factors, is_short| mixed.members(group(factors, is_short)).len();
        assert_eq!([rows(Factors::None, true), rows(Factors::Pool(7), true)], [0, 5]);
        assert_eq!([rows(Factors::None, false), rows(Factors::Adapter(9), false)], [1, 1]);
    }
}
