//! Clients that send the requests of a load, a thread and a connection for each stream.

use std::{
    io::{BufRead, BufReader},
    thread,
    time::Instant,
};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use ureq::Agent;

use super::{Load, Place, Taken};

/// Sends the requests of a load and waits for all replies.
pub(super) fn run(url: &str, load: Load, vocabulary: usize, is_streamed: bool) -> Result<Taken> {
    let url = format!("{url}/v1/completions");
    let start = Instant::now();
    let streams: Vec<Result<Taken>> = thread::scope(|scope| {
        let stream = |stream| {
            let url = &url;
            scope.spawn(move || run_stream(url, load, stream, vocabulary, is_streamed))
        };
        let threads: Vec<_> = (0..load.streams).map(stream).collect();
        let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
        joined.map(|result| result.unwrap_or_else(|_| bail!("a client panicked"))).collect()
    });
    let mut all = Taken { elapsed: start.elapsed(), ..Taken::default() };
    for one in streams {
        let one = one?;
        all.tokens += one.tokens;
        all.first.extend(one.first);
        all.gaps.extend(one.gaps);
    }
    Ok(all)
}

fn run_stream(
    url: &str,
    load: Load,
    stream: usize,
    vocabulary: usize,
    is_streamed: bool,
) -> Result<Taken> {
    let agent: Agent =
        Agent::config_builder().http_status_as_error(false).proxy(None).build().into();
    let mut taken = Taken::default();
    for number in 0..load.requests {
        let body = load.body(vocabulary, Place { stream, number }, is_streamed).to_string();
        let sent = Instant::now();
        let mut reply = agent.post(url).send(body).context("cannot reach the server")?;
        if reply.status() != 200 {
            bail!("the server says: {}", reply.body_mut().read_to_string()?);
        }
        let reader = BufReader::new(reply.into_body().into_reader());
        taken.tokens += match is_streamed {
            true => read_stream(reader, sent, &mut taken)?,
            false => completion_tokens(&serde_json::from_reader(reader)?)?,
        };
    }
    Ok(taken)
}

/// Reads server-sent events to their end. Only the last is parsed, so that clients cost little; returns the tokens it counts.
fn read_stream(reader: impl BufRead, sent: Instant, taken: &mut Taken) -> Result<usize> {
    let (mut last, mut usage) = (None, None);
    for line in reader.lines() {
        let line = line.context("the server broke off")?;
        let Some(data) = line.strip_prefix("data: ") else { continue };
        if data.contains("\"usage\":{") {
            usage = Some(completion_tokens(&serde_json::from_str(data)?)?);
        } else if data != "[DONE]" {
            let now = Instant::now();
            match last.replace(now) {
                Some(before) => taken.gaps.push(now - before),
                None => taken.first.push(now - sent),
            }
        }
    }
    usage.context("the server broke off")
}

fn completion_tokens(reply: &Value) -> Result<usize> {
    let tokens = reply["usage"]["completion_tokens"].as_u64();
    Ok(usize::try_from(tokens.with_context(|| format!("no usage in {reply}"))?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_counts_its_tokens_and_gaps() {
        let events = "data: {\"text\":\"a\"}\n\ndata: {\"text\":\"b\"}\n\n\
            data: {\"usage\":{\"completion_tokens\":5}}\n\ndata: [DONE]\n\n";
        let mut taken = Taken::default();
        assert_eq!(read_stream(events.as_bytes(), Instant::now(), &mut taken).unwrap(), 5);
        assert_eq!((taken.first.len(), taken.gaps.len()), (1, 1));
        // A stream that ends early must not pass for a short reply.
        let cut = &events.as_bytes()[..20];
        assert!(read_stream(cut, Instant::now(), &mut taken).is_err());
    }
}
