//! Properties of the streaming parser: chunks do not matter, text is not lost, time is linear.

use proptest::prelude::*;
use rullama_chat::{Event, Output, Parser, ParserOptions, Start, Thinking, Tool};

const PIECES: [&str; 24] = [
    "<|channel>",
    "<channel|>",
    "<|tool_call>",
    "<tool_call|>",
    "<|tool_response>",
    "thought",
    "thought\n",
    "\n",
    " ",
    "<",
    "<|",
    "|>",
    "<|chan",
    "nel>",
    "call:f{}",
    "call:f{a:",
    "<|\"|>",
    "}",
    "12",
    "3",
    "é",
    "\u{2003}",
    "th",
    "<|tool_",
];

fn output() -> impl Strategy<Value = String> {
    let pieces = prop::collection::vec(prop::sample::select(&PIECES[..]), 0..30);
    prop_oneof![9 => pieces.prop_map(|list| list.concat()), 1 => "\\PC*"]
}

fn options() -> impl Strategy<Value = ParserOptions> {
    (prop::bool::ANY, prop::bool::ANY).prop_map(|(hide, open)| ParserOptions {
        thinking: if hide { Thinking::Hide } else { Thinking::Show },
        start: if open { Start::Thinking } else { Start::Content },
        ..ParserOptions::default()
    })
}

/// Fragments of the other families' output.
const OTHER_PIECES: [&str; 16] = [
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<start_function_call>",
    "<end_function_call>",
    "<start_function_response>",
    "<unused94>",
    "<unused95>",
    "<|python_tag|>",
    "{\"name\": \"f\", \"arguments\": {}}",
    "call:f{a:<escape>b<escape>}",
    "{",
    "</",
    "\n",
    "thought",
];

fn other_output() -> impl Strategy<Value = String> {
    let pieces = || prop::sample::select(&PIECES[..]);
    let others = || prop::sample::select(&OTHER_PIECES[..]);
    let both = prop_oneof![1 => pieces(), 3 => others()];
    prop::collection::vec(both, 0..30).prop_map(|list| list.concat())
}

fn other_options() -> impl Strategy<Value = ParserOptions> {
    use Output::{FunctionGemma, Gemma3, Llama3, Tagged};
    let tool = || serde_json::from_str::<Tool>(r#"{"name": "f"}"#).expect("a tool");
    let outputs = prop::sample::select(&[Gemma3, FunctionGemma, Tagged, Llama3][..]);
    (options(), outputs, prop::bool::ANY).prop_map(move |(options, output, tools)| ParserOptions {
        output,
        tools: if tools { vec![tool()] } else { Vec::new() },
        ..options
    })
}

/// Parses text split before the characters with these indices. Text events in one list are merged.
fn parse(options: ParserOptions, output: &str, cuts: &[usize]) -> Vec<Event> {
    let mut parser = Parser::new(options);
    let mut events = Vec::new();
    let mut piece = String::new();
    for (i, c) in output.chars().enumerate() {
        if cuts.contains(&i) {
            parser.push(&piece, &mut events);
            piece.clear();
        }
        piece.push(c);
    }
    parser.push(&piece, &mut events);
    parser.finish(&mut events);
    events
}

fn digits<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    texts.flat_map(str::chars).filter(char::is_ascii_digit).collect()
}

proptest! {
    #[test]
    fn chunks_do_not_change_the_events(
        output in output(),
        options in options(),
        cuts in prop::collection::vec(0usize..150, 0..12),
    ) {
        let whole = parse(options.clone(), &output, &[]);
        prop_assert_eq!(&parse(options.clone(), &output, &cuts), &whole);
        let everywhere: Vec<usize> = (0..output.chars().count()).collect();
        prop_assert_eq!(&parse(options, &output, &everywhere), &whole);
    }

    #[test]
    fn chunks_do_not_change_the_events_of_other_families(
        output in other_output(),
        options in other_options(),
        cuts in prop::collection::vec(0usize..150, 0..12),
    ) {
        let whole = parse(options.clone(), &output, &[]);
        prop_assert_eq!(&parse(options.clone(), &output, &cuts), &whole);
        let everywhere: Vec<usize> = (0..output.chars().count()).collect();
        prop_assert_eq!(&parse(options, &output, &everywhere), &whole);
    }

    #[test]
    fn no_text_is_lost(output in output()) {
        let events = parse(ParserOptions::default(), &output, &[]);
        let texts: Vec<String> = events.into_iter().map(|event| match event {
            Event::Text(text) | Event::Thinking(text) | Event::BadCall { raw: text } => text,
            Event::ToolCall { arguments, .. } => serde_json::Value::Object(arguments).to_string(),
        }).collect();
        prop_assert_eq!(digits(texts.iter().map(String::as_str)), digits(std::iter::once(output.as_str())));
    }

    #[test]
    fn whole_markers_never_leak(
        pieces in prop::collection::vec(prop::sample::select(&PIECES[..9]), 0..30),
        options in options(),
    ) {
        for event in parse(options, &pieces.concat(), &[]) {
            if let Event::Text(text) | Event::Thinking(text) = event {
                prop_assert!(!text.contains('<'), "{}", text);
            }
        }
    }

    #[test]
    fn adjacent_text_events_are_merged(output in output(), options in options()) {
        let events = parse(options, &output, &[]);
        let same = |pair: &[Event]| matches!(
            (&pair[0], &pair[1]),
            (Event::Text(_), Event::Text(_)) | (Event::Thinking(_), Event::Thinking(_))
        );
        prop_assert!(!events.windows(2).any(same));
    }
}

#[test]
fn long_output_takes_linear_time() {
    for piece in [" ", "<", "<|tool_call", "a", "thought\n", "<|channel>", "<channel|> x", "é "] {
        for opening in ["", "<|channel>", "<|tool_call>call:f{a:<|\"|>"] {
            let mut parser = Parser::new(ParserOptions::default());
            let mut events = Vec::new();
            parser.push(opening, &mut events);
            // Half a megabyte and more, character by character: quadratic time would take minutes.
            for c in piece.repeat(500_000 / piece.len()).chars() {
                parser.push(c.encode_utf8(&mut [0; 4]), &mut events);
            }
            parser.finish(&mut events);
        }
    }
}
