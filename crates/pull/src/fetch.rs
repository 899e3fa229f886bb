//! The threads of a download: each fetches one part after the other and writes it at its offset in the file.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, Read},
    ops::Range,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use rullama_store::Digest;
use ureq::http::{HeaderName, Uri, header};

use crate::{
    PullError,
    error::io_error,
    headers::{announces, number, text},
    parts::Part,
    positioned::write_all_at,
    remote::{Failure, MAX_STALLS, Reached, Remote, RequestSpec, lock},
};

const PIECE: usize = 64 << 10;
/// A failed attempt that received at least this number of bytes resets the retry counters.
const GAIN: u64 = 64 << 10;

/// A file to download.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) digest: Digest,
    pub(crate) size: u64,
    /// Its URL on the server.
    pub(crate) origin: Uri,
}

/// State shared by the threads of one download.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) remote: Arc<Remote>,
    pub(crate) wanted: Wanted,
    pub(crate) file: Arc<File>,
    pub(crate) path: PathBuf,
    pub(crate) parts: Vec<ActivePart>,
    pub(crate) queue: Mutex<VecDeque<usize>>,
    /// Set when the download ends: nothing is written afterwards, even by a thread that still waits for bytes.
    pub(crate) closed: RwLock<bool>,
    /// The redirect target of the origin, and how often it was resolved.
    pub(crate) address: Mutex<(u64, Option<Uri>)>,
    pub(crate) attempts: u32,
    pub(crate) backoff: Duration,
}

/// A part and the number of bytes written.
#[derive(Debug)]
pub(crate) struct ActivePart {
    pub(crate) part: Part,
    pub(crate) written: AtomicU64,
}

impl ActivePart {
    pub(crate) fn new(part: Part) -> Self {
        Self { written: AtomicU64::new(part.completed), part }
    }

    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// The range of missing bytes.
    fn rest(&self) -> Range<u64> {
        self.part.offset + self.written()..self.part.offset + self.part.size
    }
}

impl Transfer {
    /// Bytes written so far.
    pub(crate) fn written(&self) -> u64 {
        self.parts.iter().map(ActivePart::written).sum()
    }

    /// Ends all writing. Data written so far is kept.
    pub(crate) fn close(&self) {
        *self.closed.write().unwrap_or_else(PoisonError::into_inner) = true;
    }

    fn is_closed(&self) -> bool {
        *self.closed.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn what(&self) -> String {
        self.wanted.digest.to_string()
    }

    /// Fetches parts until none is left.
    pub(crate) fn work(&self) -> Result<(), Failure> {
        loop {
            let next = lock(&self.queue).pop_front();
            match next {
                Some(index) => self.fetch_part(&self.parts[index])?,
                None => return Ok(()),
            }
        }
    }

    fn fetch_part(&self, part: &ActivePart) -> Result<(), Failure> {
        let (mut attempts, mut stalls) = (1, 0);
        let mut pause = self.backoff;
        while !part.rest().is_empty() {
            let before = part.written();
            let Err(failure) = self.attempt(part) else { continue };
            if part.written() >= before.saturating_add(GAIN) {
                (attempts, stalls, pause) = (0, 0, self.backoff);
            }
            match failure {
                Failure::Stalled if stalls < MAX_STALLS => stalls += 1,
                // A renewed address is tried at once.
                Failure::Expired(_) if attempts < self.attempts => attempts += 1,
                Failure::Retry(_) if attempts < self.attempts => {
                    attempts += 1;
                    self.sleep(pause)?;
                    pause = pause.saturating_mul(2);
                }
                failure @ (Failure::RangeIgnored | Failure::Stopped) => return Err(failure),
                last => {
                    let error = self.remote.explain(last, &self.what(), attempts);
                    return Err(Failure::Final(error));
                }
            }
        }
        Ok(())
    }

    /// Sleeps in short intervals, so that a closed download ends soon.
    fn sleep(&self, pause: Duration) -> Result<(), Failure> {
        let mut left = pause;
        while !left.is_zero() {
            if self.is_closed() {
                return Err(Failure::Stopped);
            }
            let piece = left.min(Duration::from_millis(50));
            std::thread::sleep(piece);
            left -= piece;
        }
        Ok(())
    }

    /// One request for the missing bytes of a part.
    fn attempt(&self, part: &ActivePart) -> Result<(), Failure> {
        if self.is_closed() {
            return Err(Failure::Stopped);
        }
        let (generation, address) = self.address()?;
        let mut range = part.rest();
        let what = self.what();
        let spec = RequestSpec {
            range: Some((range.start, range.end - 1)),
            what: &what,
            ..RequestSpec::default()
        };
        let Reached::Response(response) = self.remote.send(&address, spec)? else {
            return Err(Failure::Expired(302));
        };
        let headers = response.headers();
        match response.status().as_u16() {
            206 => {
                let announced = text(headers, header::CONTENT_RANGE).unwrap_or_default();
                if !announces(announced, &range, self.wanted.size) {
                    let problem = format!(
                        "bytes {}-{} of {} were requested, Content-Range says {announced:?}",
                        range.start,
                        range.end - 1,
                        self.wanted.size
                    );
                    return Err(self.remote.bad_response(&what, &problem).into());
                }
            }
            200 => range = self.whole(part, text(headers, header::CONTENT_LENGTH))?,
            status @ (401 | 403 | 404 | 410) if !self.remote.is_same(&address) => {
                self.expire(generation);
                return Err(Failure::Expired(status));
            }
            status => {
                let (host, message) = (self.remote.host(), String::new());
                return Err(PullError::Refused { host, what, status, message }.into());
            }
        }
        self.receive(part, range, response.into_body().into_reader())
    }

    /// The range covered by a response with the whole file: all of it, if the file is a single part.
    fn whole(&self, part: &ActivePart, length: Option<&str>) -> Result<Range<u64>, Failure> {
        let (size, digest) = (self.wanted.size, self.wanted.digest.clone());
        if let Some(actual) = length.and_then(number).filter(|&length| length != size) {
            return Err(PullError::SizeMismatch { digest, expected: size, actual }.into());
        }
        if part.part.size != size {
            return Err(Failure::RangeIgnored);
        }
        part.written.store(0, Ordering::Release);
        Ok(part.rest())
    }

    /// Writes the bytes of `range` as they arrive.
    fn receive(
        &self,
        part: &ActivePart,
        range: Range<u64>,
        mut body: impl Read,
    ) -> Result<(), Failure> {
        let mut buffer = vec![0; PIECE];
        let mut offset = range.start;
        while offset < range.end {
            let len = buffer.len().min(usize::try_from(range.end - offset).unwrap_or(PIECE));
            let read = match body.read(&mut buffer[..len]) {
                Ok(0) => return Err(Failure::Retry(io::ErrorKind::UnexpectedEof.into())),
                Ok(read) => read,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => {
                    return Err(match ureq::Error::from(e) {
                        ureq::Error::Timeout(_) => Failure::Stalled,
                        other => Failure::Retry(other.into_io()),
                    });
                }
            };
            let closed = self.closed.read().unwrap_or_else(PoisonError::into_inner);
            if *closed {
                return Err(Failure::Stopped);
            }
            write_all_at(&self.file, &buffer[..read], offset)
                .map_err(|e| io_error("write", &self.path, e))?;
            offset += read as u64;
            part.written.fetch_add(read as u64, Ordering::AcqRel);
        }
        Ok(())
    }

    /// The URL for range requests: the first redirect target on another host, or the origin.
    fn address(&self) -> Result<(u64, Uri), Failure> {
        let mut address = lock(&self.address);
        if let Some(known) = &address.1 {
            return Ok((address.0, known.clone()));
        }
        if address.0 == 0 {
            self.check_size()?;
        }
        let (what, origin) = (self.what(), &self.wanted.origin);
        // One byte, in case there is no redirect.
        let range = (self.wanted.size > 1).then_some((0, 0));
        let spec =
            RequestSpec { range, stop_at_other_host: true, what: &what, ..RequestSpec::default() };
        let place = match self.remote.send(origin, spec)? {
            Reached::OtherHost(place, _) => place,
            Reached::Response(response) => match response.status().as_u16() {
                200 | 206 => origin.clone(),
                401 => {
                    let advice = "the access token was not accepted";
                    return Err(PullError::Unauthorized { host: self.remote.host(), advice }.into());
                }
                status => {
                    let (host, message) = (self.remote.host(), String::new());
                    return Err(PullError::Refused { host, what, status, message }.into());
                }
            },
        };
        address.0 += 1;
        address.1 = Some(place.clone());
        Ok((address.0, place))
    }

    /// Checks the length by HEAD, as Ollama does. If the server refuses HEAD, the manifest's length is assumed.
    fn check_size(&self) -> Result<(), Failure> {
        let what = self.what();
        let spec = RequestSpec {
            head: true,
            stop_at_other_host: true,
            what: &what,
            ..RequestSpec::default()
        };
        let Ok(Reached::Response(response)) = self.remote.send(&self.wanted.origin, spec) else {
            return Ok(());
        };
        let headers = response.headers();
        let announced = text(headers, HeaderName::from_static("x-linked-size"))
            .or_else(|| text(headers, header::CONTENT_LENGTH))
            .and_then(number);
        let (digest, expected) = (self.wanted.digest.clone(), self.wanted.size);
        match announced {
            Some(actual) if response.status() == 200 && actual != expected => {
                Err(PullError::SizeMismatch { digest, expected, actual }.into())
            }
            _ => Ok(()),
        }
    }

    /// Drops an expired address, unless another thread has replaced it already.
    fn expire(&self, generation: u64) {
        let mut address = lock(&self.address);
        if address.0 == generation {
            address.1 = None;
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{collections::VecDeque, sync::Mutex, sync::RwLock, time::Duration};

    use rullama_store::Digest;

    use super::{ActivePart, Transfer, Wanted};
    use crate::{
        PullError, PullOptions,
        parts::Part,
        remote::{Failure, Remote},
    };

    #[test]
    fn a_full_disk_has_its_own_error() {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let name = "localhost/a/b".parse().unwrap();
        let part = Part { n: 0, offset: 0, size: 10, completed: 0 };
        let origin = "https://localhost/".parse().unwrap();
        let transfer = Transfer {
            remote: Remote::new(&PullOptions::default(), &name).unwrap(),
            wanted: Wanted { digest: Digest::of(b""), size: 10, origin },
            file: full.into(),
            path: "full".into(),
            parts: vec![ActivePart::new(part)],
            queue: Mutex::new(VecDeque::new()),
            closed: RwLock::new(false),
            address: Mutex::default(),
            attempts: 1,
            backoff: Duration::ZERO,
        };
        let result = transfer.receive(&transfer.parts[0], 0..10, &[0; 10][..]);
        assert!(matches!(result, Err(Failure::Final(PullError::DiskFull { .. }))), "{result:?}");
        assert_eq!(transfer.written(), 0, "only written bytes count");

        transfer.close();
        let result = transfer.receive(&transfer.parts[0], 0..10, &[0; 10][..]);
        assert!(matches!(result, Err(Failure::Stopped)), "{result:?}");
    }
}
