//! Data lines as tokens, with the demo model's vocabulary and template.

use rullama_engine::executor::Device;
use rullama_runtime::Model;
use rullama_train::{
    Dataset, Example, TrainError,
    dataset::{DataOptions, preview},
};

use crate::golden::demo;

fn read(model: &Model, text: &str) -> Result<Dataset, TrainError> {
    Dataset::of_lines(model, text, DataOptions::default())
}

/// The example as text, targets in brackets.
fn marked(model: &Model, example: &Example) -> String {
    let spans = preview(model, example).expect("a vocabulary");
    let mark = |text: String, learned| if learned { format!("[{text}]") } else { text };
    spans.into_iter().map(|span| mark(span.text, span.learned)).collect()
}

#[test]
fn every_kind_of_line_marks_its_targets() {
    let model = demo(&Device::Cpu);
    for (line, wanted) in [
        (
            r#"{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Yes."}]}"#,
            "<bos><|turn>user\nHi<turn|>\n<|turn>model\n[Yes.<turn|>]\n",
        ),
        (
            r#"{"messages":[{"role":"user","content":"A"},{"role":"assistant","content":"B"},{"role":"user","content":"C"},{"role":"assistant","content":"D"}]}"#,
            "<bos><|turn>user\nA<turn|>\n<|turn>model\n[B<turn|>]\n<|turn>user\nC<turn|>\n<|turn>model\n[D<turn|>]\n",
        ),
        (
            r#"{"prompt":"Hi","completion":"Yes."}"#,
            "<bos><|turn>user\nHi<turn|>\n<|turn>model\n[Yes.<turn|>]\n",
        ),
        // The demo model has one end token, the end of a turn.
        (r#"{"text":"Once."}"#, "<bos>[Once.<turn|>]"),
    ] {
        let data = read(&model, line).expect(line);
        assert_eq!(marked(&model, &data.examples[0]), wanted, "{line}");
    }
    let raw = DataOptions { raw: true, ..DataOptions::default() };
    let data = Dataset::of_lines(&model, r#"{"prompt":"Hi","completion":" you"}"#, raw);
    assert_eq!(marked(&model, &data.expect("data").examples[0]), "<bos>Hi[ you<turn|>]");
    let data = read(&model, r#"{"ids":[2,5,6,7],"n_prompt":2}"#).expect("data");
    assert_eq!(data.examples[0], Example::after_prompt(vec![2, 5, 6, 7], 2));
    assert_eq!(data.examples[0].learned, [false, false, true, true]);
}

#[test]
fn errors_have_a_line_number() {
    let model = demo(&Device::Cpu);
    let good = r#"{"text":"fine"}"#;
    for (line, wanted) in [
        ("{", "line 3"),
        ("[1]", "none of"),
        (r#"{"question":"?"}"#, "none of"),
        (r#"{"prompt":"a"}"#, "\"completion\" must be a string"),
        (r#"{"prompt":1,"completion":"b"}"#, "\"prompt\" must be a string"),
        (r#"{"messages":[{"role":"user","content":"a"}]}"#, "no assistant turn"),
        (r#"{"ids":[1,2],"n_prompt":2}"#, "2 tokens, 2 of them prompt"),
        (r#"{"ids":[1,-2]}"#, "\"ids\" must be a list of token ids"),
        (r#"{"ids":[1,99999999]}"#, "no token 99999999"),
        (r#"{"ids":[1,2],"n_prompt":"x"}"#, "\"n_prompt\" must be"),
    ] {
        let error = read(&model, &format!("{good}\n\n{line}\n")).expect_err(line).to_string();
        assert!(error.starts_with("line 3 of the data") && error.contains(wanted), "{error}");
    }
    assert!(matches!(read(&model, "\n \n"), Err(TrainError::NoTargets)));
}

#[test]
fn invalid_lines_are_reported_and_valid_ones_used() {
    let model = demo(&Device::Cpu);
    let text = "{\"text\":\"fine\"}\n\n{\n{\"text\":\"too\"}\n[1]\n";
    let (data, bad) = Dataset::usable_lines(&model, text, DataOptions::default());
    assert_eq!(data.examples.len(), 2);
    assert_eq!(bad.iter().map(|bad| bad.line).collect::<Vec<_>>(), [3, 5]);
    assert!(bad[1].why.to_string().contains("none of"));
}

#[test]
fn long_examples_are_truncated_and_counted() {
    let model = demo(&Device::Cpu);
    let text = "{\"ids\":[2,3,4,5,6],\"n_prompt\":1}\n{\"ids\":[2,3,4,5,6],\"n_prompt\":4}\n{\"ids\":[2,3]}\n";
    let options = DataOptions { longest: Some(3), ..DataOptions::default() };
    let data = Dataset::of_lines(&model, text, options).expect("data");
    assert_eq!((data.cut, data.dropped, data.examples.len()), (2, 1, 2));
    assert_eq!(data.examples[0].ids, [2, 3, 4]);
}

#[test]
fn a_split_holds_out_examples_by_seed() {
    let examples: Vec<Example> = (0..10).map(|i| Example::after_prompt(vec![i, 1], 1)).collect();
    let data = Dataset { examples, ..Dataset::default() };
    let (train, held_out) = data.clone().split(0.2, 7).expect("a split");
    assert_eq!((train.len(), held_out.len()), (8, 2));
    assert_eq!(data.clone().split(0.2, 7).expect("a split"), (train, held_out));
    assert!(matches!(data.clone().split(1.0, 7), Err(TrainError::Split { .. })));
    assert_eq!(data.split(0.0, 7).expect("no split").1, []);
}
