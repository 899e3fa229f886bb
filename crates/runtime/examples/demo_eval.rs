//! Evaluates the demo model: every held-out case of `goldens/demo`, on the CPU or the first GPU.
//!
//! ```sh
//! cargo xtask demo-eval [--gpu] [--model FILE] [--skill NAME]
//! ```
#![expect(clippy::print_stdout, reason = "prints the result table")]

use std::{collections::BTreeMap, ops::ControlFlow, process::ExitCode, rc::Rc};

use pollster::block_on;
use rullama_engine::{executor::Device, gpu::Gpu};
use rullama_gguf::Gguf;
use rullama_media::{
    audio::Audio,
    image::{Budget, Image},
};
use rullama_runtime::{
    Model,
    generate::{ChatOptions, Event, Generation, prompt_with},
    media::ImageSize,
    media::{MediaEncoders, Medium},
    model::{LoadOptions, hinted_options},
    session::{Session, SessionOptions},
};
use rullama_source::{ByteSource, FileSource, MemorySource};
use rullama_testkit::{DemoAnswer, DemoCase, FileKind, demo_cases, demo_media, demo_model};

/// Longer than any correct reply.
const MAX_TOKENS: i32 = 120;

/// Skills and the required share of correct replies.
const MARKS: [(&str, f64); 10] = [
    ("arithmetic", 0.95),
    ("arithmetic, thinking", 0.95),
    ("facts", 0.95),
    ("letters", 0.90),
    ("letters, thinking", 0.90),
    ("tools", 0.90),
    ("tools, thinking", 0.90),
    ("tool results", 0.90),
    ("pictures", 0.95),
    ("spoken digit", 0.85),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1).map(String::as_str)
    };
    let device = if args.iter().any(|arg| arg == "--gpu") {
        Device::Gpu(block_on(Gpu::open()).expect("a GPU"))
    } else {
        Device::Cpu
    };
    let source: Rc<dyn ByteSource> = match value("--model") {
        Some(path) => Rc::new(FileSource::open(path).expect("the model's file")),
        None => Rc::new(MemorySource::new("demo", demo_model())),
    };
    let mut demo = Demo::load(source, device);
    let mut tally = BTreeMap::new();
    let mut pending: Vec<DemoCase> = demo_cases().into_iter().chain(demo_media()).collect();
    pending.retain(|case| value("--skill").is_none_or(|skill| case.skill.starts_with(skill)));
    pending.reverse();
    while let Some(case) = pending.pop() {
        let answer = demo.answer(&case);
        let good = case.right(&answer);
        if !good {
            let asked = case.conversation.messages.last();
            println!("wrong ({}): {:?} gave {answer:?}", case.skill, asked.map(|m| &m.content));
        }
        let (right, asked): &mut (usize, usize) = tally.entry(case.skill.clone()).or_default();
        *right += usize::from(good);
        *asked += 1;
        pending.extend(case.after_call());
    }
    report(&tally)
}

/// Prints the table of the model card; fails if a skill misses its mark.
fn report(tally: &BTreeMap<String, (usize, usize)>) -> ExitCode {
    let mut missed = false;
    println!("| skill | right | of | share | mark |\n| --- | --- | --- | --- | --- |");
    for (skill, (right, asked)) in tally {
        let share = *right as f64 / *asked as f64;
        let mark = MARKS.iter().find(|(name, _)| name == skill).map(|(_, mark)| *mark);
        missed |= mark.is_some_and(|mark| share < mark);
        let mark = mark.map_or("–".into(), |mark| format!("{:.0} %", 100.0 * mark));
        println!("| {skill} | {right} | {asked} | {:.1} % | {mark} |", 100.0 * share);
    }
    if missed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

struct Demo {
    model: Model,
    encoders: MediaEncoders,
    session: Session,
}

impl Demo {
    fn load(source: Rc<dyn ByteSource>, device: Device) -> Self {
        let gguf = block_on(Gguf::open(source)).expect("a GGUF file");
        let mut go_on = |_| ControlFlow::Continue(());
        let options = LoadOptions::default();
        let model = block_on(Model::load(gguf, device, &options, &mut go_on)).expect("it loads");
        let options = SessionOptions { context: Some(1024), ..SessionOptions::default() };
        let session = model.session(&options).expect("a session");
        Self { encoders: MediaEncoders::new(&model, Vec::new()), model, session }
    }

    fn answer(&mut self, case: &DemoCase) -> DemoAnswer {
        let media: Vec<_> = case
            .file
            .iter()
            .map(|(kind, bytes)| {
                let medium = match kind {
                    FileKind::Image => Medium::Image(
                        Image::decode(bytes).expect("an image"),
                        ImageSize::Fill(Budget::Tiny),
                    ),
                    FileKind::Audio => Medium::Audio(Audio::decode(bytes).expect("a clip")),
                };
                block_on(self.encoders.encode(&medium)).expect("it is encoded")
            })
            .collect();
        let prompt = prompt_with(&self.model, &case.conversation, &media, ChatOptions::default())
            .expect("a prompt");
        let (mut options, _) = hinted_options(self.model.gguf());
        options.num_predict = MAX_TOKENS;
        let mut generation =
            Generation::new(&mut self.session, &self.model, &prompt, &options, 0).expect("it fits");
        let mut answer = DemoAnswer::default();
        while let Some(event) = block_on(generation.next()).expect("it runs") {
            match event {
                Event::Text(text) => answer.text += &text,
                Event::Thinking(_) => answer.thought = true,
                Event::ToolCall { name, arguments, .. } => answer.calls.push((name, arguments)),
                Event::BadCall { .. } | Event::Logprobs(_) | Event::Done(_) => {}
            }
        }
        answer
    }
}
