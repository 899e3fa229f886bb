//! Hashes for the two large tables: cheap for short inputs, and seeded, so that no file can force all entries into one
//! bucket.

use std::hash::{BuildHasher, RandomState};

/// The random seed of one table's hashes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seed(u64);

const MIX: u64 = 0x9E37_79B9_7F4A_7C15;

impl Seed {
    /// A fixed seed, for tables whose entries do not come from a file.
    pub(crate) const FIXED: Self = Self(0);

    pub(crate) fn random() -> Self {
        Self(RandomState::new().hash_one(MIX))
    }

    /// Hash of a pair of ids.
    #[inline]
    pub(crate) fn pair(self, left: u32, right: u32) -> u64 {
        fold((u64::from(left) << 32 | u64::from(right)) ^ self.0, MIX)
    }

    /// Hash of a text.
    #[inline]
    pub(crate) fn bytes(self, bytes: &[u8]) -> u64 {
        let mut state = (bytes.len() as u64).wrapping_mul(MIX) ^ self.0;
        let mut rest = bytes;
        while let Some((block, more)) =
            rest.split_first_chunk::<16>().filter(|(_, m)| !m.is_empty())
        {
            let (a, b) = halves(block);
            state = fold(a ^ state, b ^ MIX);
            rest = more;
        }
        let (a, b) = ends(rest);
        fold(fold(a ^ state, b ^ MIX), MIX)
    }
}

/// The two halves of the 128-bit product, XORed.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ (product >> 64) as u64
}

#[inline]
fn halves(block: &[u8; 16]) -> (u64, u64) {
    let n = u128::from_le_bytes(*block);
    (n as u64, (n >> 64) as u64)
}

/// Up to 16 bytes as two integers, which may overlap.
#[inline]
fn ends(bytes: &[u8]) -> (u64, u64) {
    if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (u64::from_le_bytes(*first), u64::from_le_bytes(*last))
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (u32::from_le_bytes(*first).into(), u32::from_le_bytes(*last).into())
    } else if let (Some(&first), Some(&last)) = (bytes.first(), bytes.last()) {
        (first.into(), u64::from(bytes[bytes.len() / 2]) << 8 | u64::from(last))
    } else {
        (0, 0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_changed_byte_or_length_changes_the_hash() {
        let seed = Seed::random();
        let mut hashes = HashSet::new();
        let mut count = 0;
        for len in 0..70 {
            let mut text = vec![b'a'; len];
            hashes.insert(seed.bytes(&text));
            count += 1;
            for i in 0..len {
                text[i] = b'b';
                hashes.insert(seed.bytes(&text));
                text[i] = b'a';
                count += 1;
            }
        }
        assert_eq!(hashes.len(), count);
    }

    #[test]
    fn the_order_of_a_pair_changes_the_hash() {
        let seed = Seed::random();
        assert_ne!(seed.pair(1, 2), seed.pair(2, 1));
        assert_ne!(seed.pair(0, 1), seed.pair(1, 0));
    }
}
