//! Development commands: `cargo xtask test`, `cargo xtask ci`, `cargo xtask guide`,
//! `cargo xtask web` and `cargo xtask python`.

#[macro_use]
mod print;

mod check;
mod ci;
mod environment;
mod guide;
mod process;
mod python;
mod test;
mod web;

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
    /// Builds the page of examples/web.
    Web(web::Options),
    /// Builds and tests the Python package of python/.
    Python(python::Options),
}

fn main() -> ExitCode {
    let result = match Options::parse().command {
        Command::Test(options) => test::command(&options),
        Command::Ci => ci::command(),
        Command::Guide => guide::command(),
        Command::Web(options) => web::command(&options),
        Command::Python(options) => python::command(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            note!("xtask: {reason}");
            ExitCode::FAILURE
        }
    }
}
