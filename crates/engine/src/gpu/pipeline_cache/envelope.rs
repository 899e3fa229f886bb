//! The envelope around a driver's data: it identifies the key that the data belongs to, and shows missing and damaged bytes.
//!
//! Magic bytes, version, digest of the key, length of the data, digest of the data, data; numbers are little-endian.

use sha2::{Digest as _, Sha256};

/// A SHA-256.
pub(super) type Digest = [u8; 32];

const MAGIC: &[u8; 8] = b"rullamaP";
const VERSION: u32 = 1;

/// The SHA-256 of these bytes.
pub(super) fn digest(bytes: &[u8]) -> Digest {
    Sha256::digest(bytes).into()
}

/// Data with this digest, in its envelope.
pub(super) fn seal(key: &Digest, digest: &Digest, data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    [MAGIC, VERSION.to_le_bytes().as_slice(), key, &length, digest, data].concat()
}

/// The data of an envelope, and its digest. `None` if it is damaged, of another version or for another key.
pub(super) fn open<'a>(key: &Digest, sealed: &'a [u8]) -> Option<(&'a [u8], Digest)> {
    let rest = sealed.strip_prefix(MAGIC)?.strip_prefix(&VERSION.to_le_bytes())?;
    let (length, rest) = rest.strip_prefix(key)?.split_first_chunk()?;
    let (checksum, data) = rest.split_first_chunk::<32>()?;
    let is_whole = data.len() as u64 == u64::from_le_bytes(*length);
    (is_whole && *checksum == digest(data)).then_some((data, *checksum))
}

#[cfg(test)]
mod tests {
    use super::{digest, open};

    fn seal(key: &[u8; 32], data: &[u8]) -> Vec<u8> {
        super::seal(key, &digest(data), data)
    }

    const KEY: [u8; 32] = [7; 32];
    const DATA: &[u8] = b"compiled pipelines";

    #[test]
    fn what_was_sealed_is_opened() {
        for data in [DATA, &[]] {
            assert_eq!(open(&KEY, &seal(&KEY, data)), Some((data, digest(data))));
        }
    }

    #[test]
    fn other_lengths_are_refused() {
        let sealed = seal(&KEY, DATA);
        for length in 0..sealed.len() {
            assert_eq!(open(&KEY, &sealed[..length]), None, "{length} bytes");
        }
        assert_eq!(open(&KEY, &[sealed.as_slice(), &[0]].concat()), None);
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let sealed = seal(&KEY, DATA);
        for bit in 0..sealed.len() * 8 {
            let mut damaged = sealed.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open(&KEY, &damaged), None, "bit {bit}");
        }
    }

    #[test]
    fn other_keys_and_versions_are_refused() {
        let sealed = seal(&KEY, DATA);
        assert_eq!(open(&digest(b"another driver"), &sealed), None);
        let mut newer = sealed.clone();
        newer[8] += 1;
        assert_eq!(open(&KEY, &newer), None);
    }
}
