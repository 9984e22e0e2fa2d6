//! The benchmark runner: checks a case against the oracle, then times it on the device.
//!
//! `cargo run --release -p sparsek-bench -- topk --backend cuda --case 2**20x256x32 --json out.jsonl`

#[macro_use]
mod print;

mod aggregate;
mod case;
mod copy;
mod delegate;
mod distance;
mod latency;
mod linear;
mod plot;
mod record;
mod rtopk;
mod startup;
mod table;
mod timing;
mod topk;

use clap::Parser;
use sparsek::io::print::lost;

/// Checks, then times.
#[derive(Parser)]
#[command(version, about)]
enum Command {
    /// Row-wise top-k.
    Topk(topk::Arguments),
    /// Top-k of one vector.
    Delegate(delegate::Arguments),
    /// Top-k of one vector that is longer than the device's memory.
    Stream(delegate::StreamArguments),
    /// Top-k of one vector over several GPUs.
    Shards(delegate::ShardArguments),
    /// Nearest neighbours of a sparse data set against itself.
    Distance(distance::Arguments),
    /// Products of a graph with dense and compressed rows, and their gradients.
    Aggregate(aggregate::Arguments),
    /// Linear layers of very many rows, and their gradients.
    Linear(linear::Arguments),
    /// Single calls of row-wise top-k, by the wall clock.
    Latency(latency::Arguments),
    /// Whole programs, with a cold and with a warm cache of kernels.
    Startup(startup::Arguments),
    /// The statistics of RTop-K's Tables 1, 2 and 5, beside the paper's.
    RtopkStats(rtopk::Arguments),
    /// A chart of records, after RTop-K's Fig. 4.
    Plot(plot::Arguments),
    /// A chart of records of vectors, after Dr. Top-k's Figs. 13, 14, 17, 18 and 21.
    PlotVectors(plot::VectorArguments),
    /// A Markdown table of a file of records.
    Table(table::Arguments),
}

fn main() -> anyhow::Result<()> {
    let command = Command::parse();
    #[cfg(feature = "cache")]
    sparsek::cache::enable_if_set()?;
    run(command)?;
    match lost() {
        Some(reason) => anyhow::bail!("standard output: {reason}"),
        None => Ok(()),
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Topk(arguments) => topk::run(&arguments),
        Command::Delegate(arguments) => delegate::run(&arguments),
        Command::Stream(arguments) => delegate::run_stream(&arguments),
        Command::Shards(arguments) => delegate::run_shards(&arguments),
        Command::Distance(arguments) => distance::run(&arguments),
        Command::Aggregate(arguments) => aggregate::run(&arguments),
        Command::Linear(arguments) => linear::run(&arguments),
        Command::Latency(arguments) => latency::run(&arguments),
        Command::Startup(arguments) => startup::run(&arguments),
        Command::RtopkStats(arguments) => rtopk::run(&arguments),
        Command::Plot(arguments) => plot::run(&arguments),
        Command::PlotVectors(arguments) => plot::run_vectors(&arguments),
        Command::Table(arguments) => table::run(&arguments),
    }
}
