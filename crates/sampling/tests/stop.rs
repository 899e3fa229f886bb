//! Stop strings, independent of how the text is split.

use proptest::{collection::vec, prelude::*};
use rullama_sampling::stop::{StopStep, StopStrings};

/// Pushes the pieces; returns the result of each and the text `finish` returns.
fn run(stops: &[&str], pieces: &[&str]) -> (Vec<StopStep>, String) {
    let mut watch = StopStrings::new(stops.iter().copied());
    let steps = pieces.iter().map(|piece| watch.push(piece)).collect();
    (steps, watch.finish())
}

#[track_caller]
fn check(stops: &[&str], pieces: &[&str], texts: &[&str], matched: Option<&str>, rest: &str) {
    let (steps, finished) = run(stops, pieces);
    let found: Vec<&str> = steps.iter().map(|step| step.text.as_str()).collect();
    assert_eq!(found, texts);
    assert_eq!(steps.iter().find_map(|step| step.matched.as_deref()), matched);
    assert_eq!(finished, rest);
}

#[test]
fn without_stops_everything_passes() {
    check(&[], &["a", "", "b"], &["a", "", "b"], None, "");
    check(&[""], &["a", "b"], &["a", "b"], None, "");
}

#[test]
fn inside_one_piece() {
    check(&["END"], &["fine END more"], &["fine "], Some("END"), "");
    check(&["END"], &["END"], &[""], Some("END"), "");
    check(&["x"], &["axbx", "y"], &["a", ""], Some("x"), "");
}

#[test]
fn across_borders() {
    check(&["END"], &["fine E", "N", "D more"], &["fine ", "", ""], Some("END"), "");
    check(&["END"], &["fine E", "N", "G"], &["fine ", "", "ENG"], None, "");
    check(&["END"], &["fine E", "N"], &["fine ", ""], None, "EN");
    check(&["END"], &["fine E", "END"], &["fine ", "E"], Some("END"), "");
    check(&["aab"], &["aaa", "ab"], &["a", "a"], Some("aab"), "");
}

#[test]
fn the_stop_that_is_complete_first_is_used() {
    check(&["abcde", "c"], &["abcde"], &["ab"], Some("c"), "");
    check(&["abcde", "c"], &["ab", "cde"], &["", "ab"], Some("c"), "");
    check(&["bc", "abc"], &["xabc"], &["x"], Some("abc"), "");
    check(&["ab", "abc"], &["abc"], &[""], Some("ab"), "");
}

#[test]
fn whole_characters_only() {
    check(&["é!"], &["caf", "é", "?"], &["caf", "", "é?"], None, "");
    check(&["é!"], &["caf", "é", "!"], &["caf", "", ""], Some("é!"), "");
    check(&["日本"], &["今日", "本"], &["今", ""], Some("日本"), "");
    check(&["🦀🦀"], &["x🦀", "🦀"], &["x", ""], Some("🦀🦀"), "");
}

#[test]
fn after_a_match_everything_is_dropped() {
    let mut watch = StopStrings::new(["."]);
    watch.push("a.b");
    assert_eq!(watch.push("c.d"), StopStep { text: String::new(), matched: None });
    assert_eq!(watch.finish(), "");
}

fn word(length: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    vec(prop::sample::select(vec!['a', 'b', 'é', '🦀']), length)
        .prop_map(|letters| letters.into_iter().collect())
}

/// Walks the text character by character, looking for a stop string at its end.
fn plain_search(stops: &[String], text: &str) -> (String, Option<String>) {
    let ends = text.char_indices().map(|(start, letter)| start + letter.len_utf8());
    for end in ends {
        let complete = stops.iter().filter(|stop| text[..end].ends_with(stop.as_str()));
        if let Some(stop) = complete.max_by_key(|stop| stop.len()) {
            return (text[..end - stop.len()].to_owned(), Some(stop.clone()));
        }
    }
    (text.to_owned(), None)
}

proptest! {
    #[test]
    fn any_split_gives_the_same(
        stops in vec(word(1..5), 0..4),
        pieces in vec(word(0..4), 0..12),
    ) {
        let mut watch = StopStrings::new(stops.clone());
        let (mut shown, mut given, mut matched) = (String::new(), String::new(), None);
        for piece in &pieces {
            given.push_str(piece);
            let step = watch.push(piece);
            shown.push_str(&step.text);
            matched = matched.or(step.matched);
            if matched.is_none() {
                // Nothing is held back that is not the beginning of a stop string.
                let held = &given[shown.len()..];
                prop_assert!(held.is_empty() || stops.iter().any(|stop| stop.starts_with(held)));
            }
        }
        shown.push_str(&watch.finish());
        prop_assert_eq!((shown, matched), plain_search(&stops, &given));
    }
}
