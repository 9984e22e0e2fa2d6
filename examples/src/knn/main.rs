//! Finds the nearest rows of a sparse matrix by any metric, on any backend; see `--help`.
mod cli;
mod search;

use std::{error::Error, fs, num::NonZeroUsize, path::Path, process::ExitCode, time::Instant};

use burn::tensor::{DType, Device};
use sparsek::{
    distance::{Metric, NearestNeighbors},
    sparse::Csr,
};
use sparsek_examples::{
    backend, npz,
    program::{self, bar, check_paths, commit, named},
    say,
};

use crate::{
    cli::Cli,
    search::{Neighbors, Search, Target},
};

#[cfg(feature = "allocator")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match program::arguments() {
        Ok(cli) => program::finish(knn(&cli)),
        Err(status) => status,
    }
}

/// Checks the whole input before writing a file.
fn knn(args: &Cli) -> Result<(), Box<dyn Error>> {
    let metric: Metric = args.metric.parse()?;
    let target = match (args.radius, args.k) {
        (Some(radius), _) => Target::Radius(radius),
        (None, Some(k)) => Target::Nearest(k),
        (None, None) => return Err("--k or --radius is needed".into()),
    };
    let inputs = [Some(&args.data), args.query.as_ref()].into_iter().flatten();
    // Opening refuses folders.
    check_paths(inputs.filter(|input| !input.is_dir()), [&args.output])?;
    let backend = backend::open(args.backend)?;
    let load = |file: &Path| match &args.key {
        Some(key) => Csr::from_hdf5(file, Some(key), (&backend.device, DType::F32)),
        None => Csr::from_file(file, (&backend.device, DType::F32)),
    };
    let index = load(&args.data)?;
    let query = args.query.as_deref().map(load).transpose()?;
    let rows = index.rows();
    let index = NearestNeighbors::fit(index, metric);
    let search = Search { index, query, target };
    search.check_memory()?;
    let output = npz::create(&args.output)?;
    say!("{} rows among {rows} by {metric} on {backend}", search.rows());
    let start = Instant::now();
    let found = run(&search, args.query_batch)
        .map_err(|error| named(args.query.as_ref().unwrap_or(&args.data), error))?;
    let memory = memory(&backend.device);
    let written = search.write(output, &found);
    let output = written.map_err(|error| named(&args.output, error))?;
    commit(&args.output, output)?;
    let seconds = start.elapsed().as_secs_f64();
    say!("{} written in {seconds:.2} s", args.output.display());
    say!("memory: {memory}");
    Ok(())
}

fn run(search: &Search, batch: Option<NonZeroUsize>) -> Result<Neighbors, Box<dyn Error>> {
    let batches = search.batches(batch.map(NonZeroUsize::get));
    let bar = bar(batches.len());
    let mut found = Neighbors::default();
    for rows in batches {
        search.run(rows, &mut found)?;
        if let Some(bar) = &bar {
            bar.inc(1);
        }
    }
    if let Some(bar) = &bar {
        bar.finish_and_clear();
    }
    Ok(found)
}

/// Peak host memory, if known, and the device's pools, if any.
fn memory(device: &Device) -> String {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let host = match peak_resident() {
        Some(bytes) => format!("peak resident set {:.0} MiB", mib(bytes)),
        None => "peak resident set unknown".to_string(),
    };
    match device.memory_pool_usage() {
        Some(pools) => format!(
            "{host}; at most {:.0} MiB in the device's pools, {:.0} MiB of them in use at the end",
            // Pools keep their peak.
            mib(pools.bytes_reserved),
            mib(pools.bytes_in_use),
        ),
        None => host,
    }
}

/// `VmHWM` of Linux.
fn peak_resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}
