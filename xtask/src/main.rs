//! The project's own commands: `cargo xtask test` and `cargo xtask ci`.

#[macro_use]
mod print;

mod check;
mod ci;
mod environment;
mod process;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "The project's own commands")]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs every test, and the suite on each backend with fusion and without.
    Test(test::Options),
    /// Runs everything that a change must pass.
    Ci,
}

fn main() -> ExitCode {
    let result = match Options::parse().command {
        Command::Test(options) => test::command(&options),
        Command::Ci => ci::command(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            note!("xtask: {reason}");
            ExitCode::FAILURE
        }
    }
}
