//! The suite: every routine, backend, dtype, method and layout against the oracle.
//!
//! One binary, so that it can be carried to the machine with the device. `--backend` chooses what
//! has to be there; the exit status is 1 when a case failed or nothing ran, 2 when a backend that
//! was asked for is missing.

mod dense;
mod determinism;
mod distance;
mod gnn;
mod kernels;
mod large;
mod property;
mod sparse;
mod spmm;
mod topk;
mod vector;

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::Parser;
use libtest_mimic::Arguments;
use sparsek::io::print::{note, say};
use sparsek_tests::backend::{Backend, Kind};
use sparsek_tests::runner::{self, Cases};

#[derive(Parser)]
#[command(about = "Runs the sparsek suite")]
struct Options {
    /// Backends that must be present and pass; all that are linked if not given.
    #[arg(long, value_enum, value_delimiter = ',')]
    backend: Vec<Kind>,
    /// Adds the cases that need many gigabytes and a GPU.
    #[arg(long)]
    large: bool,
    /// Writes one JSON line with the counts of every backend.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    property: property::Plan,
    #[command(flatten)]
    libtest: Arguments,
}

/// Set in the process that tries a kernel with shared memory.
const PROBE: &str = "SPARSEK_SUITE_PROBE";

/// Whether a kernel with shared memory leaves the process alive, found out in another process: old
/// software drivers take it down.
fn survives(kind: &Kind) -> bool {
    if std::env::var_os(PROBE).is_some() {
        return true;
    }
    let Ok(own) = std::env::current_exe() else {
        return true;
    };
    let case = format!("{kind}/tensor/gnn/sage/mean");
    let kind = kind.to_string();
    let probe = Command::new(own)
        .env(PROBE, "1")
        .args(["--backend", &kind, "--exact", &case])
        .output();
    // A case that merely fails is for the suite to report.
    probe.is_ok_and(|output| output.status.code().is_some())
}

fn main() -> ExitCode {
    let options = Options::parse();
    #[cfg(feature = "cache")]
    if let Err(error) = sparsek::cache::enable_if_set() {
        note(format_args!("{error}"));
        return ExitCode::from(2);
    }
    let kinds = if options.backend.is_empty() {
        Kind::linked()
    } else {
        options.backend
    };
    let mut backends: Vec<Backend> = Vec::new();
    let mut missing = false;
    for kind in &kinds {
        match kind.open() {
            Ok(backend) if backend.is_llvmpipe() && !survives(kind) => {
                backends.push(backend.without_shared_memory())
            }
            Ok(backend) => backends.push(backend),
            Err(reason) => {
                note(format_args!("backend {kind} is missing: {reason}"));
                missing = true;
            }
        }
    }
    if missing || backends.is_empty() {
        return ExitCode::from(2);
    }

    let mut cases = Cases::default();
    for backend in &backends {
        topk::add(&mut cases, backend);
        vector::add(&mut cases, backend);
        determinism::add(&mut cases, backend);
        spmm::add(&mut cases, backend);
        sparse::add(&mut cases, backend);
        dense::add(&mut cases, backend);
        distance::add(&mut cases, backend);
        gnn::add(&mut cases, backend);
        property::add(&mut cases, backend, options.property);
        if options.large {
            large::add(&mut cases, backend);
        }
    }

    let filtered = options.libtest.filter.is_some() || !options.libtest.skip.is_empty();
    let listing = options.libtest.list;
    let counts = runner::run(options.libtest, &kinds, cases);
    if listing {
        return ExitCode::SUCCESS;
    }
    if let Some(path) = &options.json
        && let Err(error) = std::fs::write(path, runner::json_lines(&backends, &counts))
    {
        note(format_args!("{}: {error}", path.display()));
        return ExitCode::from(2);
    }

    let ran: usize = counts
        .iter()
        .map(|counts| counts.passed + counts.failed)
        .sum();
    let idle = counts
        .iter()
        .zip(&kinds)
        .find(|(counts, _)| counts.passed + counts.failed == 0);
    let failed = counts.iter().any(|counts| counts.failed > 0);
    if ran == 0 {
        note(format_args!("nothing ran"));
    } else if let (Some((_, kind)), false) = (idle, filtered) {
        note(format_args!("nothing ran on {kind}"));
    }
    say(format_args!(
        "{}",
        runner::summary(&backends, &counts).trim_end()
    ));
    let incomplete = ran == 0 || (idle.is_some() && !filtered);
    ExitCode::from(u8::from(failed || incomplete))
}
