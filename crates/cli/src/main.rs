//! The `rullama` program.

mod args;
mod exit;
mod list;
mod locate;
mod ops;
mod output;
mod render;
mod show;
mod tokens;
mod verify;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use args::{Args, Command};

fn main() -> ExitCode {
    let args = Args::parse();
    let json = args.command.json();
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::report(&error, json),
    }
}

fn run(args: Args) -> Result<()> {
    let stores = locate::stores(args.store);
    match args.command {
        Command::List(args) => list::list(&stores, &args),
        Command::Show(args) => show::show(&stores, &args),
        Command::Tokenize(args) => tokens::tokenize(&stores, &args),
        Command::Detokenize(args) => tokens::detokenize(&stores, &args),
        Command::Render(args) => render::render(&stores, &args),
        Command::Verify(args) => verify::verify(&stores, &args),
        Command::Ops(command) => ops::ops(&command),
    }
}
