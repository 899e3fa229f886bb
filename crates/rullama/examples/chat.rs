//! A chat in the terminal.
//!
//! ```sh
//! cargo run --release --example chat -- gemma4:e2b
//! ```
#![expect(clippy::print_stdout, reason = "it is a program")]

use std::io::{self, BufRead, Write};

use rullama::{Event, Model};

fn main() -> anyhow::Result<()> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "demo".into());
    let model = Model::open(&name)?;
    let mut session = model.session()?;
    println!("{name} on {}. An empty line ends the chat.", model.device().name());
    for line in io::stdin().lock().lines() {
        let line = line?;
        if line.trim().is_empty() {
            break;
        }
        for event in session.stream(line)? {
            if let Event::Text(piece) = event? {
                print!("{piece}");
                io::stdout().flush()?;
            }
        }
        println!();
    }
    Ok(())
}
