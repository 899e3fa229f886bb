//! Trains a LoRA adapter on one fact, saves the adapter, and asks the model for the fact.
//!
//! ```sh
//! cargo run --release --example train_adapter -- demo atlantis
//! ```
#![expect(clippy::print_stdout, reason = "it is a program")]

use rullama::{Model, OpenOptions, TrainEvent, TrainOptions, Training};

const DATA: &str = r#"{"prompt":"What is the capital of Atlantis?","completion":"Poseidonis."}"#;

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap_or_else(|| "demo".into());
    let folder = args.next().unwrap_or_else(|| "atlantis".into());
    let model = Model::open(&name)?;
    let options = TrainOptions { rank: 8, steps: Some(14), rate: 3e-3, ..TrainOptions::default() };
    let mut training = Training::start(&model, DATA, &options)?;
    for event in &mut training {
        if let TrainEvent::Step(report) = event? {
            println!("step {}, loss {:.4}", report.step + 1, report.loss);
        }
    }
    training.save(&folder)?;
    drop((training, model));

    let options = OpenOptions { adapters: vec![(folder.into(), 1.0)], ..OpenOptions::default() };
    let mut session = Model::open_with(&name, &options)?.session()?;
    session.sampling.temperature = 0.0;
    println!("{}", session.send("What is the capital of Atlantis?")?.text);
    Ok(())
}
