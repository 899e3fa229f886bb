//! A token for every request whose prompt is done.

use std::collections::BTreeMap;

use rullama_engine::{cpu::Data, executor::Results};
use rullama_models::gemma4::PassOutput;

use super::{
    RequestId, Scheduler, Sink, Update,
    passes::{GREEDY, MOST_ROWS, Row},
};
use crate::{error::RuntimeError, generate::NextToken, session::DeviceSampling};

/// Requests whose rows can go through one pass: those with the same adapters that read alike many keys, and whose tokens are chosen on the same
/// side. Those that the host chooses come first: their logits arrive while the others are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    on_device: bool,
    adapter: u64,
    is_short: bool,
}

/// A request's place among those that run, and how its next token is chosen on the device.
type Member = (usize, Option<DeviceSampling>);

impl Scheduler {
    /// Makes a token for every request whose prompt is done; false if there is none.
    pub(super) async fn decode(&mut self, sink: &mut Sink<'_>) -> Result<bool, RuntimeError> {
        let groups = self.groups();
        let mut queued = Vec::new();
        for (group, members) in &groups {
            for members in members.chunks(MOST_ROWS) {
                let ids: Vec<RequestId> =
                    members.iter().map(|(index, _)| self.running[*index].id).collect();
                queued.push((ids, self.queue_pass(*group, members).await));
            }
        }
        for (ids, results) in queued {
            let taken = match results {
                Ok(results) => self.take(&ids, results, sink).await,
                Err(error) => Err(error),
            };
            if let Err(error) = taken {
                self.fail(&ids, error, sink)?;
            }
        }
        self.tell(sink);
        Ok(!groups.is_empty())
    }

    /// Requests that take a token, by pass.
    fn groups(&mut self) -> BTreeMap<Group, Vec<Member>> {
        let context = self.context();
        let mut groups: BTreeMap<Group, Vec<Member>> = BTreeMap::new();
        for (index, running) in self.running.iter_mut().enumerate() {
            if !running.is_prefilled() {
                continue;
            }
            let sampling = match running.completion.next_token() {
                None | Some(NextToken::Ended) => continue,
                _ if running.tokens.len() >= context => {
                    running.completion.context_full();
                    continue;
                }
                Some(NextToken::FromDevice(sampling)) => Some(sampling),
                Some(NextToken::FromLogits) => None,
            };
            let on_device = sampling.is_some();
            let is_short = on_device && self.passes.is_short(running.filled);
            let group = Group { on_device, adapter: running.adapter, is_short };
            groups.entry(group).or_default().push((index, sampling));
        }
        groups
    }

    async fn queue_pass(
        &mut self,
        group: Group,
        members: &[Member],
    ) -> Result<Results, RuntimeError> {
        for (index, _) in members {
            let running = &mut self.running[*index];
            self.pool.cover(&mut running.pages, running.filled + 1)?;
        }
        let row = |(index, sampling): &Member| {
            let running = &self.running[*index];
            let (draw, seed) = match sampling {
                Some(DeviceSampling::Drawn { draw, seed }) => (*draw, *seed),
                Some(DeviceSampling::Greedy) | None => (GREEDY, 0),
            };
            let token = running.tokens.last().copied().unwrap_or(0);
            Row { token, position: running.filled, pages: &running.pages, draw, seed }
        };
        let rows: Vec<Row<'_>> = members.iter().map(row).collect();
        let all_greedy = members.iter().all(|(_, sampling)| *sampling == Some(DeviceSampling::Greedy));
        let output = match (group.on_device, all_greedy) {
            (false, _) => PassOutput::LogitsEach,
            (true, true) => PassOutput::GreedyEach,
            (true, false) => PassOutput::DrawnEach,
        };
        self.passes.decode((group.adapter, output, group.is_short), &rows).await
    }

    /// Gives the rows of a pass what came out of it.
    async fn take(
        &mut self,
        ids: &[RequestId],
        results: Results,
        sink: &mut Sink<'_>,
    ) -> Result<(), RuntimeError> {
        let data = results.wait().await?.pop();
        let width = self.model().config().vocabulary;
        for (row, id) in ids.iter().enumerate() {
            let Some(index) = self.running.iter().position(|running| running.id == *id) else {
                continue;
            };
            let running = &mut self.running[index];
            let chosen = match &data {
                Some(Data::U32(tokens)) => Ok(tokens[row]),
                Some(Data::F32(logits)) => {
                    running.completion.choose(&logits[row * width..][..width])
                }
                other => panic!("a pass makes tokens or logits, not {other:?}"),
            };
            running.filled += 1;
            let accepted = chosen.and_then(|token| {
                running.tokens.push(token);
                sink(*id, Update::Token(token));
                running.completion.accept(token)
            });
            if let Err(error) = accepted {
                self.fail(&[*id], error, sink)?;
            }
        }
        Ok(())
    }

    /// Tells the events of all requests and removes those that have ended.
    fn tell(&mut self, sink: &mut Sink<'_>) {
        for running in &mut self.running {
            while let Some(event) = running.completion.event() {
                sink(running.id, Update::Event(event));
            }
        }
        while let Some(index) = self.running.iter().position(|running| running.completion.ended()) {
            self.remove(index);
        }
    }
}
