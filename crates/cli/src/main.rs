//! The `rullama` program.

mod adapter;
mod adapters;
mod args;
mod bench;
mod client;
mod draft;
mod embed;
mod eval;
mod exit;
mod interrupt;
mod list;
mod load;
mod locate;
mod manage;
mod media;
mod memory;
mod ops;
mod output;
mod output_file;
mod perplexity;
mod plot;
mod quiet;
mod render;
mod run;
mod serve;
mod show;
mod state;
mod tokens;
mod towers;
mod train;
mod tune;
mod verify;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use args::{Args, Command};
use manage::Missing;

fn main() -> ExitCode {
    let args = Args::parse();
    let json = args.command.json();
    match interrupt::install().and_then(|()| run(args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<output::OutputClosed>() => ExitCode::SUCCESS,
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
        Command::Run(args) => run::run(&stores, &args),
        Command::Serve(args) => serve::serve(stores, *args),
        Command::Pull(args) => manage::pull(&stores, &args),
        Command::Rm(args) => manage::remove(&stores, &args),
        Command::Cp(args) => manage::copy(&stores, &args),
        Command::Ps(args) => manage::ps(&args),
        Command::Stop(args) => manage::stop(&args),
        Command::Create(_) => manage::missing(Missing::Create),
        Command::Push(_) => manage::missing(Missing::Push),
        Command::Signin(_) => manage::missing(Missing::Signin),
        Command::Bench(args) => bench::bench(&stores, &args),
        Command::Tune(args) => tune::tune(&stores, &args),
        Command::BenchTowers(args) => towers::towers(&args),
        Command::Embed(args) => embed::embed(&stores, &args),
        Command::Eval(args) => eval::eval(&stores, &args),
        Command::Train(args) => train::train(&stores, &args),
        Command::EvalAdapter(args) => train::compare(&stores, &args),
        Command::Perplexity(args) => perplexity::perplexity(&stores, &args),
        Command::Adapter(command) => adapter::adapter(&stores, &command),
        Command::Ops(command) => ops::ops(&command),
    }
}
