//! The benchmark runner: checks each case against the oracle, then times it on the device.
//!
//! `cargo run --release -p sparsek-bench -- topk --backend cuda --case 2**20x256x32 --json
//! out.jsonl`
//!
//! The library has a module for each bench.

use std::{
    env,
    ffi::OsString,
    process::{self, Command as Process},
};

use clap::Parser;
use sparsek::io::print::{lost, note};
use sparsek_bench::{
    compare, convolutions, dense, distance, latency, layers, linear,
    paper::{reproduce, row_chart, rtopk, vector_chart},
    report, spmm, startup, table, topk, vector,
};
use sparsek_tests::backend::Kind;

/// Checks cases against the oracle, times them, and reports the records.
///
/// `--backend all` runs a bench on each linked backend that is found.
#[derive(Parser)]
#[command(version, about)]
enum Command {
    /// Row-wise top-k.
    Topk(topk::Arguments),
    /// Top-k of one vector.
    Delegate(vector::Arguments),
    /// Top-k of one vector longer than device memory.
    Stream(vector::StreamArguments),
    /// Top-k of one vector over several GPUs.
    Shards(vector::ShardArguments),
    /// Nearest neighbors of a sparse data set within itself.
    Distance(distance::Arguments),
    /// Nearest neighbors among dense rows.
    Dense(dense::Arguments),
    /// Products of a graph with dense and compressed rows, their gradients, and training epochs.
    #[command(alias = "aggregate")]
    Spmm(spmm::Arguments),
    /// Linear layers with many rows, and their gradients.
    Linear(linear::Arguments),
    /// Graph convolutions and their gradients.
    Convolutions(convolutions::Arguments),
    /// Single calls of row-wise top-k, by the wall clock.
    Latency(latency::Arguments),
    /// Sorting and model layers.
    Layers(layers::Arguments),
    /// Whole programs with a cold and a warm kernel cache.
    Startup(startup::Arguments),
    /// Paper: the figures of a paper beside ours, measured now.
    Paper(reproduce::Arguments),
    /// Paper: the statistics of RTop-K's Tables 1, 2 and 5.
    RtopkStats(rtopk::Arguments),
    /// Paper: a chart of `topk` records after RTop-K's Fig. 4.
    Plot(row_chart::Arguments),
    /// Paper: a chart of `delegate` records after Dr. Top-k's figures.
    PlotVectors(vector_chart::Arguments),
    /// A Markdown table of one file of records.
    Table(table::Arguments),
    /// Compares the times of two files of records; fails if a case became slower.
    Compare(compare::Arguments),
    /// Writes docs/performance.md and its figures from the records.
    Report(report::Arguments),
}

#[cfg(feature = "allocator")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<OsString> = env::args_os().collect();
    if let Some(at) = all_backends(&arguments) {
        return run_each(&arguments, at);
    }
    let command = Command::parse();
    #[cfg(feature = "cache")]
    sparsek::cache::enable_if_set()?;
    run(command)?;
    match lost() {
        Some(reason) => anyhow::bail!("standard output: {reason}"),
        None => Ok(()),
    }
}

/// Position of `all` in `--backend all`; `--backend=all` counts too.
fn all_backends(arguments: &[OsString]) -> Option<usize> {
    let separate = |pair: &[OsString]| pair[0] == "--backend" && pair[1] == "all";
    let joined = || arguments.iter().position(|argument| argument == "--backend=all");
    arguments.windows(2).position(separate).map(|at| at + 1).or_else(joined)
}

/// Runs this program once for each linked backend that is found. A process of its own keeps a
/// driver's crash from the other backends.
fn run_each(arguments: &[OsString], at: usize) -> anyhow::Result<()> {
    let program = env::current_exe()?;
    let mut failed = Vec::new();
    for kind in Kind::linked() {
        if let Err(reason) = kind.find() {
            note(format_args!("{reason}"));
            continue;
        }
        let mut arguments = arguments.to_vec();
        arguments[at] = match arguments[at] == "all" {
            true => kind.to_string().into(),
            false => format!("--backend={kind}").into(),
        };
        if !Process::new(&program).args(&arguments[1..]).status()?.success() {
            failed.push(kind.to_string());
        }
    }
    if !failed.is_empty() {
        note(format_args!("failed on {}", failed.join(", ")));
        process::exit(1);
    }
    Ok(())
}

fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Topk(arguments) => topk::run(&arguments),
        Command::Delegate(arguments) => vector::run(&arguments),
        Command::Stream(arguments) => vector::run_stream(&arguments),
        Command::Shards(arguments) => vector::run_shards(&arguments),
        Command::Distance(arguments) => distance::run(&arguments),
        Command::Dense(arguments) => dense::run(&arguments),
        Command::Spmm(arguments) => spmm::run(&arguments),
        Command::Linear(arguments) => linear::run(&arguments),
        Command::Convolutions(arguments) => convolutions::run(&arguments),
        Command::Latency(arguments) => latency::run(&arguments),
        Command::Layers(arguments) => layers::run(&arguments),
        Command::Startup(arguments) => startup::run(&arguments),
        Command::Paper(arguments) => reproduce::run(&arguments),
        Command::RtopkStats(arguments) => rtopk::run(&arguments),
        Command::Plot(arguments) => row_chart::run(&arguments),
        Command::PlotVectors(arguments) => vector_chart::run(&arguments),
        Command::Table(arguments) => table::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("topk --backend all --case 8x8x2", Some(3))]
    #[case("topk --backend=all", Some(2))]
    #[case("topk --backend cuda --dist all", None)]
    #[case("report", None)]
    fn finds_all_backends(#[case] line: &str, #[case] expected: Option<usize>) {
        let mut arguments = vec![OsString::from("sparsek-bench")];
        arguments.extend(line.split(' ').map(OsString::from));
        assert_eq!(all_backends(&arguments), expected);
    }
}
