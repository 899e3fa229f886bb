//! The newest tokens of the context and how often each occurs among the last `repeat_last_n`.

use std::collections::{BTreeMap, VecDeque};

/// The number of recent tokens a penalty applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Window {
    /// The whole context.
    All,
    /// That many tokens.
    Last(usize),
}

impl Window {
    /// Parses the option: negative = whole context.
    pub(crate) fn of_option(last_n: i32) -> Self {
        usize::try_from(last_n).map_or(Self::All, Self::Last)
    }

    fn wider(self, other: Self) -> Self {
        match (self, other) {
            (Self::Last(a), Self::Last(b)) => Self::Last(a.max(b)),
            _ => Self::All,
        }
    }
}

/// The recent tokens that penalties apply to, oldest first.
#[derive(Debug, Clone)]
pub(crate) struct History {
    tokens: VecDeque<u32>,
    counts: BTreeMap<u32, u32>,
    repeat: Window,
    kept: Window,
}

impl History {
    /// An empty history as long as the larger window.
    pub(crate) fn new(repeat: Window, dry: Window) -> Self {
        let kept = repeat.wider(dry);
        Self { tokens: VecDeque::new(), counts: BTreeMap::new(), repeat, kept }
    }

    /// Appends a token.
    pub(crate) fn push(&mut self, token: u32) {
        self.tokens.push_back(token);
        *self.counts.entry(token).or_default() += 1;
        if let Window::Last(n) = self.repeat
            && let Some(left) = self.tokens.len().checked_sub(n + 1)
        {
            self.forget(self.tokens[left]);
        }
        if let Window::Last(n) = self.kept
            && self.tokens.len() > n
        {
            self.tokens.pop_front();
        }
    }

    /// Occurrences of each token among the last `repeat_last_n`.
    pub(crate) fn counts(&self) -> &BTreeMap<u32, u32> {
        &self.counts
    }

    /// The tokens of a window no wider than those kept, newest first.
    pub(crate) fn newest_first(&self, window: Window) -> Vec<u32> {
        let newest = self.tokens.iter().rev().copied();
        match window {
            Window::All => newest.collect(),
            Window::Last(n) => newest.take(n).collect(),
        }
    }

    /// The tokens kept, oldest first.
    pub(crate) fn oldest_first(&self) -> impl Iterator<Item = u32> {
        self.tokens.iter().copied()
    }

    fn forget(&mut self, token: u32) {
        if let Some(count) = self.counts.get_mut(&token) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&token);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(repeat: i32, dry: i32, tokens: &[u32], kept: &[u32], counts: &[(u32, u32)]) {
        let mut history = History::new(Window::of_option(repeat), Window::of_option(dry));
        for &token in tokens {
            history.push(token);
        }
        assert_eq!(history.oldest_first().collect::<Vec<_>>(), kept);
        let found: Vec<_> = history.counts().iter().map(|(&id, &count)| (id, count)).collect();
        assert_eq!(found, counts);
    }

    #[test]
    fn counts_follow_their_window() {
        let tokens = [5, 5, 6, 5, 7];
        check(3, 0, &tokens, &[6, 5, 7], &[(5, 1), (6, 1), (7, 1)]);
        check(3, 4, &tokens, &[5, 6, 5, 7], &[(5, 1), (6, 1), (7, 1)]);
        check(-1, 0, &tokens, &tokens, &[(5, 3), (6, 1), (7, 1)]);
        check(0, 2, &tokens, &[5, 7], &[]);
        check(0, 0, &tokens, &[], &[]);
        check(9, 9, &tokens, &tokens, &[(5, 3), (6, 1), (7, 1)]);
    }
}
