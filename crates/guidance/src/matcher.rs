//! The state of one constrained reply.

use llguidance::toktrie::SimpleVob;

use crate::GuidanceError;

/// The constraint of one reply. Clones are independent; clone one that has committed nothing for every reply of the same format.
#[derive(Clone)]
pub struct Matcher {
    inner: llguidance::Matcher,
    mask: SimpleVob,
}

impl Matcher {
    pub(crate) fn new(inner: llguidance::Matcher) -> Self {
        Self { inner, mask: SimpleVob::new() }
    }

    /// The tokens that may come next: bit `id % 32` of word `id / 32`. End tokens are among them once the reply is complete.
    ///
    /// # Errors
    /// If the grammar exceeds its limits.
    pub fn mask(&mut self) -> Result<&[u32], GuidanceError> {
        self.mask = self.inner.compute_mask_or_eos().map_err(lost)?;
        Ok(self.mask.as_slice())
    }

    /// Whether a token may come next, by the last [`Self::mask`].
    pub fn allows(&self, id: u32) -> bool {
        (id as usize) < self.mask.len() && self.mask.is_allowed(id)
    }

    /// Advances by a token; true if only the end can follow.
    ///
    /// # Errors
    /// If the token was not allowed, or the grammar exceeds its limits.
    pub fn commit(&mut self, id: u32) -> Result<bool, GuidanceError> {
        self.inner.consume_token(id).map_err(lost)?;
        Ok(self.inner.is_stopped())
    }

    /// Advances by text that the reply begins with; true if only the end can follow. Grammars read bytes, so it does not matter which
    /// tokens the text is in the prompt.
    ///
    /// # Errors
    /// [`GuidanceError::Prefix`] if no reply of the format begins with it.
    pub fn advance(&mut self, text: &str) -> Result<bool, GuidanceError> {
        let env = self.inner.tok_env().map_err(lost)?;
        let tokens = env.tok_trie().greedy_tokenize(text.as_bytes());
        // Bytes that no token has are left out.
        let is_whole = env.tok_trie().decode(&tokens) == text.as_bytes();
        if !is_whole || self.inner.try_consume_tokens(&tokens).map_err(lost)? < tokens.len() {
            return Err(GuidanceError::Prefix);
        }
        Ok(self.inner.is_stopped())
    }
}

impl std::fmt::Debug for Matcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Matcher")
    }
}

#[expect(clippy::needless_pass_by_value, reason = "passed to `map_err`")]
fn lost(error: impl ToString) -> GuidanceError {
    GuidanceError::Lost { why: error.to_string() }
}
