//! Development commands: `cargo xtask test` and `cargo xtask ci`.

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
#[command(about = "Development commands of sparsek")]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs all tests, and the suite on each backend with and without fusion.
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
