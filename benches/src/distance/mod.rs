//! Nearest neighbours of a sparse data set against itself.

mod check;

use std::path::{Path, PathBuf};

use anyhow::Context;
use sparsek::{
    distance::{Measure, Metric, NearestNeighbors, ROUTINES, Routine},
    sparse::Csr,
};
use sparsek_tests::backend::{Backend, Kind};

use self::check::check;
use crate::{
    copy,
    record::{self, NeighborRecord},
    timing::{measure_tensors, wall_clock},
};

/// Checks and times nearest neighbours among the rows of sparse matrices.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where to run.
    #[arg(long)]
    backend: Kind,
    /// A CSR matrix, as SciPy's save_npz writes it; may be repeated.
    #[arg(long, required = true)]
    data: Vec<PathBuf>,
    /// A metric by name, of Minkowski's with its p: minkowski:3; may be repeated.
    #[arg(long = "metric", required = true)]
    metrics: Vec<Metric>,
    /// Neighbours of each row.
    #[arg(long, default_value_t = 16)]
    k: usize,
    /// A routine instead of the one that is chosen: merge, inverted or tiled.
    #[arg(long, value_parser = routine)]
    routine: Option<Routine>,
    /// Rows that are compared at a time.
    #[arg(long)]
    query_batch: Option<usize>,
    /// Appends one JSON line per file and metric.
    #[arg(long)]
    json: Option<PathBuf>,
}

fn routine(text: &str) -> Result<Routine, String> {
    let named = ROUTINES.into_iter().find(|one| one.name() == text);
    let names = ROUTINES.map(Routine::name).join(", ");
    named.ok_or_else(|| format!("{text}: there are {names}"))
}

/// Runs every file with every metric.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let backend = arguments.backend.open().map_err(anyhow::Error::msg)?;
    let copy_gbps = match &backend.client {
        Some(client) => copy::rate(client, copy::elements(&backend))?,
        None => 0.0,
    };
    println!(
        "{} ({}): copy {copy_gbps:.0} GB/s",
        arguments.backend, backend.label
    );
    for path in &arguments.data {
        let index = Csr::from_npz(path, &backend.device)?;
        for &metric in &arguments.metrics {
            one(arguments, &backend, (path, &index), metric, copy_gbps)
                .with_context(|| format!("{}, {metric}", path.display()))?;
        }
    }
    Ok(())
}

fn one(
    arguments: &Arguments,
    backend: &Backend,
    (path, index): (&Path, &Csr),
    metric: Metric,
    copy_gbps: f64,
) -> anyhow::Result<()> {
    let measure = Measure::from(metric).with_routine(arguments.routine);
    let mut fitted = NearestNeighbors::fit(index.clone(), measure);
    if let Some(rows) = arguments.query_batch {
        fitted = fitted.with_query_batch(rows);
    }
    let neighbors = || fitted.kneighbors(None, arguments.k);
    let first_ms = wall_clock(|| {
        neighbors()?;
        Ok(backend.device.sync()?)
    })?;
    let checked = check(index, metric, neighbors()?)?;
    let ms = measure_tensors(&backend.device, || {
        drop(neighbors().expect("it has been checked"));
    })?;
    let work = work(index);
    let case = path.file_stem().unwrap_or_default().to_string_lossy();
    let record = NeighborRecord {
        bench: "distance".into(),
        case: case.to_string(),
        backend: arguments.backend.to_string(),
        device: backend.label.clone(),
        dtype: format!("{:?}", index.dtype()).to_lowercase(),
        method: metric.to_string(),
        routine: arguments.routine.map_or("auto", Routine::name).into(),
        dist: "data".into(),
        k: arguments.k,
        ms,
        first_ms,
        floor_ms: match copy_gbps > 0.0 {
            true => 12.0 * index.nnz() as f64 / copy_gbps / 1e6,
            false => 0.0,
        },
        work,
        gwork_per_s: work / ms / 1e6,
        copy_gbps,
        checked,
    };
    println!(
        "{case} {metric} {}: {ms:.3} ms, {:.0} x one read, {:.1} G pairs of entries/s, first call {first_ms:.0} ms",
        record.routine,
        ms / record.floor_ms,
        record.gwork_per_s
    );
    if let Some(path) = &arguments.json {
        record::append(path, &record)?;
    }
    Ok(())
}

/// Pairs of entries in one column.
fn work(index: &Csr) -> f64 {
    let mut counts = vec![0.0; index.cols()];
    for &column in index.pattern().indices() {
        counts[column as usize] += 1.0;
    }
    counts.iter().map(|count: &f64| count * count).sum()
}
