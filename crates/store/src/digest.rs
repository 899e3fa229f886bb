//! SHA-256 digests as manifests write them.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// The SHA-256 of a file: 64 hex digits, and so never a path.
#[derive(Debug, Clone)]
pub struct Digest {
    hex: String,
}

impl Digest {
    /// `sha256:` or `sha256-`, then 64 hex digits; anything else is no digest.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text.strip_prefix("sha256").and_then(|rest| rest.strip_prefix([':', '-']))?;
        let valid = hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit());
        valid.then(|| Self { hex: hex.into() })
    }

    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self::finish(Sha256::new_with_prefix(bytes))
    }

    /// The digest of everything `hasher` has seen.
    pub(crate) fn finish(hasher: Sha256) -> Self {
        Self::from_bytes(hasher.finalize().into())
    }

    /// The digest whose 32 bytes are known.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self { hex: bytes.iter().map(|byte| format!("{byte:02x}")).collect() }
    }

    /// The 64 hex digits as they were written.
    pub fn hex(&self) -> &str {
        &self.hex
    }

    /// The first 12 hex digits, which is how Ollama shows a model's id.
    pub fn short(&self) -> &str {
        &self.hex[..12]
    }
}

/// Case does not matter in hex.
impl PartialEq for Digest {
    fn eq(&self, other: &Self) -> bool {
        self.hex.eq_ignore_ascii_case(&other.hex)
    }
}

impl Eq for Digest {}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex)
    }
}

#[cfg(test)]
mod tests {
    use super::Digest;

    #[test]
    fn only_digests_are_digests() {
        let hex = "0123456789abcdefABCDEF0123456789abcdef0123456789abcdef0123456789";
        assert_eq!(hex.len(), 64);
        for text in [format!("sha256:{hex}"), format!("sha256-{hex}")] {
            assert_eq!(Digest::parse(&text).unwrap().hex(), hex);
        }
        for text in [
            String::new(),
            "sha256:".into(),
            hex.into(),
            format!("sha256{hex}"),
            format!("sha512:{hex}"),
            format!("SHA256:{hex}"),
            format!("sha256:{}", &hex[1..]),
            format!("sha256:{hex}0"),
            format!("sha256:{hex}\n"),
            format!(" sha256:{hex}"),
            format!("sha256:{}g", &hex[1..]),
            format!("sha256-../{}", &hex[3..]),
            format!("sha256:é{}", &hex[2..]),
        ] {
            assert!(Digest::parse(&text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn the_digest_of_nothing_is_known() {
        let nothing = Digest::of(b"");
        assert_eq!(nothing.short(), "e3b0c44298fc");
        let upper = format!("sha256-{}", nothing.hex().to_uppercase());
        assert_eq!(Digest::parse(&upper).unwrap(), nothing);
    }
}
