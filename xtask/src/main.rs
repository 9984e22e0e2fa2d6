//! Development commands: `cargo xtask test`, `cargo xtask ci` and `cargo xtask guide`.

#[macro_use]
mod print;

mod check;
mod ci;
mod environment;
mod guide;
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
    /// Builds docs/guide with mdbook.
    Guide,
}

fn main() -> ExitCode {
    let result = match Options::parse().command {
        Command::Test(options) => test::command(&options),
        Command::Ci => ci::command(),
        Command::Guide => guide::command(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            note!("xtask: {reason}");
            ExitCode::FAILURE
        }
    }
}
