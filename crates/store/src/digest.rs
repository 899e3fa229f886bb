//! SHA-256 digests as manifests write them.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// The SHA-256 of a file: 64 hex digits, and so never a path.
#[derive(Debug, Clone)]
pub struct Digest {
    hex: String,
}

impl Digest {
    /// Parses `sha256:` or `sha256-` and 64 hex digits.
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

    /// The digest with these 32 bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self { hex: bytes.iter().map(|byte| format!("{byte:02x}")).collect() }
    }

    /// The 64 hex digits, in their original case.
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
    fn digests_are_parsed_or_refused() {
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
    fn the_digest_of_no_bytes() {
        let empty = Digest::of(b"");
        assert_eq!(empty.short(), "e3b0c44298fc");
        let upper = format!("sha256-{}", empty.hex().to_uppercase());
        assert_eq!(Digest::parse(&upper).unwrap(), empty);
    }
}
