//! Saving and restoring sessions.
//! Format: magic with version, fingerprint of model and adapters, sizes, tokens, soft tokens, then every state with its length. Integers
//! are little-endian.

use std::rc::Rc;

use rullama_engine::{
    executor::state_bytes,
    graph::{Origin, Type},
};
use rullama_models::decoder::{PassOutput, crosses_cut, decoder};

use sha2::{Digest, Sha256};

use super::{MAX_IN_FLIGHT, Media, Session, SessionOptions};
use crate::{
    adapters::Adapters,
    error::RuntimeError,
    media::SoftTokens,
    model::{CacheType, Model},
};

const MAGIC: &[u8; 8] = b"rullama\x02";
const DAMAGED: RuntimeError = RuntimeError::Saved { why: "is damaged" };

impl Session {
    /// Serialises the session: tokens and KV caches.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn save(&mut self) -> Result<Vec<u8>, RuntimeError> {
        self.drop_in_flight();
        let mut out = MAGIC.to_vec();
        out.extend(fingerprint(&self.model, self.adapters.as_ref()));
        out.push(cache_byte(self.options.cache));
        let SessionOptions { chunk, block, in_flight, .. } = self.options;
        for number in [self.context, chunk, block, in_flight, self.filled, self.written] {
            put_number(&mut out, number);
        }
        put_ids(&mut out, &self.tokens);
        put_ids(&mut out, &self.options.suppress);
        let media = self.soft.among(&self.tokens);
        put_number(&mut out, media.len());
        for (first, media) in media {
            put_ids(&mut out, &[first, media.placeholder, media.whole.into()]);
            put_number(&mut out, media.rows.count);
            media.rows.values.iter().for_each(|value| out.extend(value.to_le_bytes()));
        }
        for (name, ty) in self.cache_types() {
            // A session that has not run yet has no caches.
            let bytes = self.memory.read(&name, &ty).await?.unwrap_or_default();
            put_number(&mut out, bytes.len());
            out.extend(bytes);
        }
        Ok(out)
    }

    pub(crate) async fn restore(
        model: &Model,
        adapters: Option<&Adapters>,
        saved: &[u8],
    ) -> Result<Self, RuntimeError> {
        let mut reader = Reader(saved);
        if reader.take(MAGIC.len())? != MAGIC {
            return Err(RuntimeError::Saved { why: "was saved by another program or version" });
        }
        if reader.take(32)? != fingerprint(model, adapters) {
            return Err(RuntimeError::Saved { why: "belongs to another model or adapter" });
        }
        let cache = cache_of(reader.take(1)?[0])?;
        let [context, chunk, block, in_flight, filled, written] = [(); 6].map(|()| reader.number());
        let (filled, written) = (filled?, written?);
        let tokens = reader.ids()?;
        let suppress = reader.ids()?;
        let (context, chunk, block, in_flight) = (context?, chunk?, block?, in_flight?);
        let known = |id: &u32| (*id as usize) < model.config().vocabulary;
        let possible = (1..=context).contains(&chunk) && in_flight <= MAX_IN_FLIGHT;
        if !possible || tokens.len() > context || !suppress.iter().all(known) {
            return Err(DAMAGED);
        }
        let options =
            SessionOptions { context: Some(context), cache, chunk, block, suppress, in_flight };
        let mut session = Self::new(model, &options)?;
        session.set_adapters(adapters)?;
        // Every row of a medium belongs to one token.
        let mut rows = 0_usize;
        for _ in 0..reader.number()? {
            let (first, media) = reader.media(model.config().width)?;
            rows = rows.saturating_add(media.rows.count);
            if rows > tokens.len() || !session.soft.put(first, media) {
                return Err(DAMAGED);
            }
        }
        session.extend(&tokens)?;
        let most = session.context.saturating_add(session.ring);
        if filled > tokens.len() || written < filled || written > most {
            return Err(DAMAGED);
        }
        let parts: Vec<(String, Type)> = session.cache_types();
        let mut caches = Vec::with_capacity(parts.len());
        for (name, ty) in parts {
            let length = reader.number()?;
            if length != 0 && length != state_bytes(&ty) {
                return Err(DAMAGED);
            }
            caches.push((name, ty, reader.take(length)?));
        }
        if caches.iter().all(|(_, _, bytes)| !bytes.is_empty()) {
            // Preparing a graph allocates the states.
            session.prepared(PassOutput::Logits, 1).await?;
            caches.iter().for_each(|(name, ty, bytes)| session.memory.write(name, ty, bytes));
            (session.filled, session.written) = (filled, written);
        }
        Ok(session)
    }

    /// Names and types of all caches.
    fn cache_types(&self) -> Vec<(String, Type)> {
        let decoder =
            decoder(&self.model.0.config, &self.model.0.catalog, &self.pass(PassOutput::Logits, 1));
        let state = |origin: &Origin| match origin {
            Origin::State(name) => Some(name.clone()),
            _ => None,
        };
        let mut caches: Vec<(String, Type)> = Vec::new();
        for (_, info) in decoder.segments.iter().flat_map(|segment| segment.graph.values()) {
            // The format does not depend on where experts run.
            if let Some(name) = state(&info.origin).filter(|name| !crosses_cut(name))
                && !caches.iter().any(|(known, _)| *known == name)
            {
                caches.push((name, info.ty.clone()));
            }
        }
        caches
    }
}

fn put_number(out: &mut Vec<u8>, number: usize) {
    out.extend((number as u64).to_le_bytes());
}

fn put_ids(out: &mut Vec<u8>, ids: &[u32]) {
    put_number(out, ids.len());
    ids.iter().for_each(|id| out.extend(id.to_le_bytes()));
}

/// Hash that identifies the weights that computed the caches.
fn fingerprint(model: &Model, adapters: Option<&Adapters>) -> [u8; 32] {
    let Some(adapters) = adapters else { return model.0.fingerprint };
    let hash = Sha256::new_with_prefix(model.0.fingerprint);
    hash.chain_update(adapters.fingerprint()).finalize().into()
}

fn cache_byte(cache: CacheType) -> u8 {
    match cache {
        CacheType::F32 => 0,
        CacheType::F16 => 1,
        CacheType::Q8 => 2,
    }
}

fn cache_of(byte: u8) -> Result<CacheType, RuntimeError> {
    match byte {
        0 => Ok(CacheType::F32),
        1 => Ok(CacheType::F16),
        2 => Ok(CacheType::Q8),
        _ => Err(DAMAGED),
    }
}

/// Checked reader of untrusted bytes.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], RuntimeError> {
        let split = self.0.split_at_checked(count);
        let (taken, rest) = split.ok_or(RuntimeError::Saved { why: "is truncated" })?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<usize, RuntimeError> {
        let bytes = self.take(8)?.try_into().expect("eight bytes were taken");
        usize::try_from(u64::from_le_bytes(bytes)).map_err(|_| DAMAGED)
    }

    /// A medium and its first id.
    fn media(&mut self, width: usize) -> Result<(u32, Media), RuntimeError> {
        let Ok([first, placeholder, whole]) = <[u32; 3]>::try_from(self.ids()?) else {
            return Err(DAMAGED);
        };
        let count = self.number()?;
        let bytes = count.checked_mul(width * 4).ok_or(DAMAGED)?;
        let values = self.take(bytes)?.as_chunks().0.iter().map(|four| f32::from_le_bytes(*four));
        let rows = SoftTokens { count, values: values.collect() };
        Ok((first, Media { placeholder, rows: Rc::new(rows), whole: whole != 0 }))
    }

    fn ids(&mut self) -> Result<Vec<u32>, RuntimeError> {
        let count = self.number()?;
        let bytes = count.checked_mul(4).ok_or(DAMAGED)?;
        let ids = self.take(bytes)?.chunks_exact(4);
        Ok(ids.map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
    }
}
