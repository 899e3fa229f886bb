//! One reply, token by token, with thinking and the time it took.
//!
//! ```sh
//! cargo run --release --example stream -- gemma4:e2b "Why is the sky blue?"
//! ```
#![expect(clippy::print_stdout, reason = "it is a program")]

use std::io::{self, Write};

use rullama::{Event, Model};

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap_or_else(|| "demo".into());
    let prompt = args.next().unwrap_or_else(|| "What is 23 + 45?".into());
    let mut session = Model::open(&name)?.session()?;
    session.thinking = true;
    session.sampling.temperature = 0.0;
    let mut stream = session.stream(prompt)?;
    for event in &mut stream {
        match event? {
            Event::Thinking(piece) | Event::Text(piece) => print!("{piece}"),
            Event::Done(done) => println!("\n[{}]", done.finish.reason()),
            _ => {}
        }
        io::stdout().flush()?;
    }
    let reply = stream.reply();
    let seconds = reply.timings.generation.as_secs_f64();
    println!("{} tokens in {seconds:.2} s", reply.done.answer_tokens);
    Ok(())
}
