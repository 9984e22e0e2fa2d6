//! Trains graph networks with the MaxK nonlinearity.
//!
//! Without arguments it trains MaxK-SAGE, then the same model with ReLU, on a built-in block model, and leaves
//! `maxk.jsonl` and `maxk.svg`. `train` and `eval` work on datasets; see `--help`.
mod cli;
mod commands;
mod plot;
mod progress;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let done = match cli.command {
        None => commands::demo(&cli.demo),
        Some(cli::Command::Train(args)) => commands::train(&args),
        Some(cli::Command::Eval(args)) => commands::eval(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
