//! Bounds the memory that the codebooks of an OGG Vorbis file need.
//!
//! A codebook of 30 bytes can unpack to 16 MB, and a setup header may have 256 of them. The decoder unpacks all of them, so their sizes
//! are added up before it does.

use crate::MediaError;

/// Length of the identification header, which the setup header follows.
const IDENTIFICATION: usize = 30;
const SETUP: &[u8] = b"\x05vorbis";
const SYNC: u32 = 0x56_4342;
/// Memory limit: several times what encoders' files need.
const MAX_BYTES: u64 = 16 << 20;
/// Bytes of an entry in the decoder's tables: length, code word, value and tree.
const ENTRY_BYTES: u64 = 24;

/// Refuses headers whose codebooks would take more memory than those of any real file.
///
/// # Errors
/// If they would. Other damage is reported by the decoder.
pub(super) fn check(headers: &[u8]) -> Result<(), MediaError> {
    if unpacked(headers) > MAX_BYTES {
        let reason = "its codebooks are too large".into();
        return Err(MediaError::BadAudio { reason });
    }
    Ok(())
}

/// Unpacked size of all readable codebooks, in bytes.
fn unpacked(headers: &[u8]) -> u64 {
    let setup = headers.get(IDENTIFICATION..).and_then(|rest| rest.strip_prefix(SETUP));
    let Some(setup) = setup else { return 0 };
    let mut bits = Bits { bytes: setup, at: 0 };
    let count = bits.read(8).map_or(0, |count| count + 1);
    (0..count).map_while(|_| codebook(&mut bits)).sum()
}

/// Unpacked size of the next codebook in bytes; `None` if the header is damaged.
fn codebook(bits: &mut Bits<'_>) -> Option<u64> {
    if bits.read(24)? != SYNC {
        return None;
    }
    let (dimensions, entries) = (bits.read(16)?, bits.read(24)?);
    if bits.read(1)? == 1 {
        ordered_lengths(bits, entries)?;
    } else {
        let sparse = bits.read(1)? == 1;
        for _ in 0..entries {
            if !sparse || bits.read(1)? == 1 {
                bits.read(5)?;
            }
        }
    }
    let own = u64::from(entries) * ENTRY_BYTES;
    let table = u64::from(entries) * u64::from(dimensions) * 4;
    let values = match bits.read(4)? {
        0 => return Some(own),
        1 => u64::from(root(entries, dimensions)?),
        2 => u64::from(entries) * u64::from(dimensions),
        _ => return None,
    };
    bits.skip(64)?;
    let width = bits.read(4)? + 1;
    bits.skip(1)?;
    bits.skip(values.checked_mul(u64::from(width))?)?;
    Some(own + table)
}

/// Skips ordered code word lengths, which are stored as counts per length.
fn ordered_lengths(bits: &mut Bits<'_>, entries: u32) -> Option<()> {
    bits.skip(5)?;
    let mut left = entries;
    while left > 0 {
        left = left.checked_sub(bits.read(32 - left.leading_zeros())?)?;
    }
    Some(())
}

/// The largest integer whose power `dimensions` is at most `entries`.
fn root(entries: u32, dimensions: u32) -> Option<u32> {
    match dimensions {
        0 => return None,
        1 => return Some(entries),
        _ => {}
    }
    let fits = |value: &u32| value.checked_pow(dimensions).is_some_and(|power| power <= entries);
    Some((1..).take_while(fits).last().unwrap_or(0))
}

/// A bit reader, least significant bit first.
struct Bits<'a> {
    bytes: &'a [u8],
    at: u64,
}

impl Bits<'_> {
    fn read(&mut self, count: u32) -> Option<u32> {
        let mut value = 0;
        for bit in 0..count {
            let at = self.at + u64::from(bit);
            let byte = *self.bytes.get(usize::try_from(at / 8).ok()?)?;
            value |= u32::from(byte >> (at % 8) & 1) << bit;
        }
        self.at += u64::from(count);
        Some(value)
    }

    fn skip(&mut self, count: u64) -> Option<()> {
        self.at = self.at.checked_add(count)?;
        (self.at <= self.bytes.len() as u64 * 8).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bit writer, the inverse of [`Bits`].
    #[derive(Default)]
    struct Out(Vec<bool>);

    impl Out {
        fn put(&mut self, value: u32, count: u32) {
            self.0.extend((0..count).map(|bit| value >> bit & 1 == 1));
        }

        fn headers(&self) -> Vec<u8> {
            let mut headers = vec![0; IDENTIFICATION];
            headers.extend(SETUP);
            let byte =
                |bits: &[bool]| bits.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
            headers.extend(self.0.chunks(8).map(byte));
            headers
        }
    }

    /// Headers of codebooks with equal code words, which are short whatever size they unpack to.
    fn headers(count: u32, entries: u32, dimensions: u32) -> Vec<u8> {
        let mut out = Out::default();
        out.put(count - 1, 8);
        for _ in 0..count {
            out.put(SYNC, 24);
            out.put(dimensions, 16);
            out.put(entries, 24);
            out.put(1, 1);
            out.put(16, 5);
            out.put(entries, 32 - entries.leading_zeros());
            out.put(1, 4);
            out.put(0, 32);
            out.put(0, 32);
            out.put(0, 4);
            out.put(0, 1);
            for _ in 0..root(entries, dimensions).expect("dimensions") {
                out.put(1, 1);
            }
        }
        out.headers()
    }

    #[test]
    fn codebooks_that_unpack_to_gigabytes_are_refused() {
        let bomb = headers(256, 1 << 17, 32);
        assert!(bomb.len() < 10_000, "{}", bomb.len());
        assert!(matches!(check(&bomb), Err(MediaError::BadAudio { .. })));
        assert_eq!(check(&headers(44, 1 << 10, 8)), Ok(()));
        assert_eq!(check(&bomb[..40]), Ok(()), "truncation is reported by the decoder");
        assert_eq!(check(b""), Ok(()));
    }

    #[test]
    fn the_headers_of_a_real_file_are_read_to_the_end() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/audio/tone.ogg");
        let file = std::fs::read(path).expect("a seed");
        let headers = crate::audio::decode::headers(&file).expect("OGG Vorbis");
        let mut bits = Bits { bytes: &headers[IDENTIFICATION + SETUP.len()..], at: 0 };
        let count = bits.read(8).expect("a count") + 1;
        let books = (0..count).map_while(|_| codebook(&mut bits)).count();
        assert_eq!(books, count as usize);
        // After the codebooks comes one time transform, which is zero.
        assert_eq!((bits.read(6), bits.read(16)), (Some(0), Some(0)));
        let bytes = unpacked(&headers);
        assert!((10_000..MAX_BYTES / 4).contains(&bytes), "{bytes}");
    }

    #[test]
    fn roots_are_rounded_down() {
        assert_eq!(root(131_072, 32), Some(1));
        assert_eq!(root(81, 4), Some(3));
        assert_eq!(root(80, 4), Some(2));
        assert_eq!(root(7, 1), Some(7));
        assert_eq!(root(0, 2), Some(0));
        assert_eq!(root(5, 0), None);
    }
}
