//! The suite: every routine, backend, dtype, method and layout against the oracle.
//!
//! A single binary, so that it can be copied to a machine with a GPU. Without `--backend` it runs
//! each linked backend that the machine has in its own process, and names the missing ones.
//!
//! Exit status: 1 if a case failed or, without a filter, nothing ran on a backend; 2 if a requested
//! backend is missing. A filter that matches nothing is a failure only for requested backends, as
//! `cargo test NAME` filters every target.

mod dense;
mod determinism;
mod distance;
mod gnn;
mod kernels;
mod large;
mod nn;
mod property;
mod sparse;
mod spmm;
mod topk;
mod vector;

use std::{
    ffi::OsString,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, ExitCode, ExitStatus, Stdio},
    thread,
};

use clap::Parser;
use libtest_mimic::Arguments;
use sparsek::io::print::{note, say};
use sparsek_tests::{
    backend::{Backend, Kind},
    runner::{self, Cases},
};

#[derive(Parser)]
#[command(about = "Tests every routine on every backend against the oracle")]
struct Options {
    /// Backends that must be present and pass. Default: all linked backends that are found.
    #[arg(long, value_enum, value_delimiter = ',', env = BACKENDS)]
    backend: Vec<Kind>,
    /// Also runs the cases that need many gigabytes and a GPU.
    #[arg(long)]
    large: bool,
    /// Writes one JSON line of counts per backend.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    property: property::Plan,
    #[command(flatten)]
    libtest: Arguments,
}

const BACKENDS: &str = "SPARSEK_BACKENDS";
/// Set in the processes of [`run_processes`].
const CHILD: &str = "SPARSEK_SUITE_CHILD";
/// Exit status of a child whose filter matched nothing.
const NOTHING_RAN: u8 = 3;
/// Set in the process that probes shared memory.
const PROBE: &str = "SPARSEK_SUITE_PROBE";

/// Whether a process survives a kernel with shared memory; old software drivers crash.
fn survives(kind: &Kind) -> bool {
    if std::env::var_os(PROBE).is_some() {
        return true;
    }
    let Ok(executable) = std::env::current_exe() else {
        return true;
    };
    let case = format!("{kind}/tensor/gnn/sage/mean");
    let kind = kind.to_string();
    let probe = Command::new(executable)
        .env(PROBE, "1")
        .args(["--backend", &kind, "--exact", &case])
        .output();
    // Only a crash matters: the suite itself reports a case that fails.
    probe.is_ok_and(|output| output.status.code().is_some())
}

fn open(requested: &[Kind]) -> Result<Vec<Backend>, ()> {
    let linked = Kind::linked();
    let kinds = if requested.is_empty() { &linked } else { requested };
    if kinds.is_empty() {
        note(format_args!("no backend is linked: add one, such as `--features flex`"));
    }
    let mut backends = Vec::new();
    let mut missing = false;
    for kind in kinds {
        match kind.find() {
            Ok(backend) if backend.is_llvmpipe() && !survives(kind) => {
                backends.push(backend.without_shared_memory())
            }
            Ok(backend) => backends.push(backend),
            Err(reason) => {
                note(format_args!("{reason}"));
                missing = true;
            }
        }
    }
    match backends.is_empty() || (missing && !requested.is_empty()) {
        true => Err(()),
        false => Ok(backends),
    }
}

fn add(cases: &mut Cases, backend: &Backend, options: &Options) {
    topk::add(cases, backend);
    vector::add(cases, backend);
    determinism::add(cases, backend);
    spmm::add(cases, backend);
    sparse::add(cases, backend);
    dense::add(cases, backend);
    distance::add(cases, backend);
    nn::add(cases, backend);
    gnn::add(cases, backend);
    property::add(cases, backend, options.property);
    if options.large {
        large::add(cases, backend);
    }
}

fn shared_arguments() -> Vec<OsString> {
    let mut shared = Vec::new();
    let mut all = std::env::args_os().skip(1);
    while let Some(argument) = all.next() {
        match argument.to_str() {
            Some("--backend") => _ = all.next(),
            Some(text) if text.starts_with("--backend=") => {}
            _ => shared.push(argument),
        }
    }
    shared
}

/// Output of a backend's process.
struct Report {
    status: ExitStatus,
    /// From the heading of failures to the end.
    failures: Vec<String>,
    /// Last line; after a crash, the case that ran.
    last: String,
}

impl Report {
    /// Copies the child's lines until it ends.
    fn follow(mut child: Child) -> std::io::Result<Self> {
        let (mut failures, mut last) = (Vec::new(), String::new());
        if let Some(out) = child.stdout.take() {
            for line in BufReader::new(out).lines() {
                last = line?;
                say(format_args!("{last}"));
                if last == "failures:" || !failures.is_empty() {
                    failures.push(last.clone());
                }
            }
        }
        Ok(Self { status: child.wait()?, failures, last })
    }
}

/// Runs each backend in its own process, all at once: a case mostly compiles kernels, on a single
/// thread.
fn run_processes(backends: &[Backend], requested: bool) -> std::io::Result<ExitCode> {
    let executable = std::env::current_exe()?;
    let start = |backend: &Backend| -> std::io::Result<Child> {
        Command::new(&executable)
            .args(shared_arguments())
            .args(["--backend", &backend.kind.to_string()])
            .env_remove(BACKENDS)
            .env(CHILD, "1")
            .stdout(Stdio::piped())
            .spawn()
    };
    let children: Vec<Child> = backends.iter().map(start).collect::<Result<_, _>>()?;
    let results = thread::scope(|scope| {
        let threads: Vec<_> =
            children.into_iter().map(|child| scope.spawn(move || Report::follow(child))).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined.map(|result| result.expect("a thread that copies lines")).collect::<Vec<_>>()
    });
    let (mut failed, mut ran) = (false, false);
    for (backend, report) in backends.iter().zip(results) {
        let report = report?;
        match report.status.code() {
            Some(0) => ran = true,
            Some(code) if code == i32::from(NOTHING_RAN) => {}
            _ => {
                // The backends' lines alternate; what explains the failure comes last.
                report.failures.iter().for_each(|line| note(format_args!("{line}")));
                if report.failures.is_empty() {
                    note(format_args!("the last line was: {}", report.last));
                }
                note(format_args!("the suite failed on {}: {}", backend.kind, report.status));
                failed = true;
            }
        }
    }
    Ok(ExitCode::from(u8::from(failed || (requested && !ran))))
}

fn main() -> ExitCode {
    let options = Options::parse();
    // One line per panic: refusals surface as panics, which the cases report.
    std::panic::set_hook(Box::new(|info| note(format_args!("{info}"))));
    #[cfg(feature = "cache")]
    if let Err(error) = sparsek::cache::enable_if_set() {
        note(format_args!("{error}"));
        return ExitCode::from(2);
    }
    let listing = options.libtest.list;
    let Ok(backends) = open(&options.backend) else {
        return ExitCode::from(2);
    };
    let kernels = backends.iter().any(|backend| backend.client.is_some());
    if !kernels && options.backend.is_empty() && !listing {
        note(format_args!(
            "no kernel runs: no CubeCL runtime was found. Add `--features vulkan` (needs a GPU \
             driver or Mesa's), `--features cuda`, or `--features cpu` (needs LLVM)"
        ));
    }
    if backends.len() > 1 && !listing && !options.libtest.exact && options.json.is_none() {
        let requested = !options.backend.is_empty();
        return run_processes(&backends, requested).unwrap_or_else(|error| {
            note(format_args!("{error}"));
            ExitCode::from(2)
        });
    }

    let kinds: Vec<Kind> = backends.iter().map(|backend| backend.kind).collect();
    let mut cases = Cases::default();
    for backend in &backends {
        add(&mut cases, backend, &options);
    }
    let filtered = options.libtest.filter.is_some() || !options.libtest.skip.is_empty();
    let counts = runner::run(options.libtest, &kinds, cases);
    if listing {
        return ExitCode::SUCCESS;
    }
    for backend in &backends {
        // A runtime that still compiles a kernel when the process ends aborts it. Failures were
        // counted where they matter.
        let _ = backend.device.sync();
    }
    if let Some(path) = &options.json
        && let Err(error) = std::fs::write(path, runner::json_lines(&backends, &counts))
    {
        note(format_args!("{}: {error}", path.display()));
        return ExitCode::from(2);
    }

    let ran: usize = counts.iter().map(|counts| counts.passed + counts.failed).sum();
    let idle = counts.iter().zip(&kinds).find(|(counts, _)| counts.passed + counts.failed == 0);
    let failed = counts.iter().any(|counts| counts.failed > 0);
    if ran == 0 {
        note(format_args!("nothing ran"));
    } else if let (Some((_, kind)), false) = (idle, filtered) {
        note(format_args!("nothing ran on {kind}"));
    }
    say(format_args!("{}", runner::summary(&backends, &counts).trim_end()));
    let incomplete = idle.is_some() && !filtered;
    if ran == 0 && filtered && std::env::var_os(CHILD).is_some() {
        return ExitCode::from(NOTHING_RAN);
    }
    let unmatched = ran == 0 && !options.backend.is_empty();
    ExitCode::from(u8::from(failed || incomplete || unmatched))
}
