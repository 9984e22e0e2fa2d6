//! The benchmark runner: checks a case against the oracle, then times it on the device.
//!
//! `cargo run --release -p sparsek-bench -- topk --backend cuda --case 2**20x256x32 --json out.jsonl`

mod case;
mod copy;
mod record;
mod table;
mod timing;
mod topk;

use clap::Parser;

/// Checks, then times.
#[derive(Parser)]
#[command(version, about)]
enum Command {
    /// Row-wise top-k.
    Topk(topk::Arguments),
    /// A Markdown table of a file of records.
    Table(table::Arguments),
}

fn main() -> anyhow::Result<()> {
    match Command::parse() {
        Command::Topk(arguments) => topk::run(&arguments),
        Command::Table(arguments) => table::run(&arguments),
    }
}
