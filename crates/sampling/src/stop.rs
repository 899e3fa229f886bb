//! Stop strings: generation ends before the first of them, even if it spans several tokens.

/// Watches a stream of text for stop strings.
///
/// Its output does not depend on how the text is split: the stop string that is complete first is used; among those
/// that end at the same position, the longest.
#[derive(Debug, Clone, PartialEq)]
pub struct StopStrings {
    stops: Vec<String>,
    /// End of the text that may be the beginning of a stop string.
    held: String,
    stopped: bool,
}

/// The result of one piece of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopStep {
    /// Text that belongs to no stop string.
    pub text: String,
    /// The stop string that was found; text after it is dropped.
    pub matched: Option<String>,
}

impl StopStrings {
    /// Watches for these texts; empty ones are ignored.
    pub fn new(stops: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let stops = stops.into_iter().map(Into::into).filter(|stop: &String| !stop.is_empty());
        Self { stops: stops.collect(), held: String::new(), stopped: false }
    }

    /// Adds the next piece. After a match, all text is dropped.
    pub fn push(&mut self, piece: &str) -> StopStep {
        if self.stopped {
            return StopStep { text: String::new(), matched: None };
        }
        let mut text = std::mem::take(&mut self.held);
        text.push_str(piece);
        if let Some((start, stop)) = self.first_match(&text) {
            let matched = Some(stop.to_owned());
            text.truncate(start);
            self.stopped = true;
            return StopStep { text, matched };
        }
        self.held = text.split_off(self.safe_length(&text));
        StopStep { text, matched: None }
    }

    /// The text held back, if generation ends for another reason.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// Start and text of the stop string that ends first.
    fn first_match<'a>(&'a self, text: &str) -> Option<(usize, &'a str)> {
        self.stops
            .iter()
            .filter_map(|stop| text.find(stop.as_str()).map(|start| (start, stop.as_str())))
            .min_by_key(|(start, stop)| (start + stop.len(), *start))
    }

    /// Length of the text before the longest suffix that begins a stop string.
    fn safe_length(&self, text: &str) -> usize {
        let longest = self.stops.iter().map(String::len).max().unwrap_or(0);
        let from = text.len().saturating_sub(longest);
        let starts = text.char_indices().map(|(start, _)| start).skip_while(|start| *start < from);
        starts
            .into_iter()
            .find(|start| self.stops.iter().any(|stop| stop.starts_with(&text[*start..])))
            .unwrap_or(text.len())
    }
}
