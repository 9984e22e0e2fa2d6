//! Nearest neighbors of a sparse data set within itself.

mod check;
mod synthetic;

use std::path::{Path, PathBuf};

use anyhow::Context;
use burn::tensor::{DType, Device};
use sparsek::{
    distance::{Measure, Metric, NearestNeighbors, ROUTINES, Routine},
    sparse::Csr,
};
use sparsek_tests::backend::{Backend, Kind};

use self::check::check;
use crate::{
    copy,
    record::{self, NeighborRecord},
    timing::{Ready, measure_tensors, wall_clock},
};

/// Checks and times nearest neighbors among the rows of sparse matrices.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where to run.
    #[arg(long)]
    backend: Kind,
    /// A CSR matrix as SciPy's save_npz writes it, or a synthetic one of the paper's sizes:
    /// synthetic:movielens, edgar, scrna or nytimes; synthetic:movielens/8 has an eighth of the
    /// rows; may be repeated.
    #[arg(long, required = true)]
    data: Vec<String>,
    /// A metric by name, for example cosine or minkowski:3; may be repeated.
    #[arg(long = "metric", required_unless_present = "all_metrics")]
    metrics: Vec<Metric>,
    /// All metrics.
    #[arg(long, conflicts_with = "metrics")]
    all_metrics: bool,
    /// Neighbors of each row.
    #[arg(long, default_value_t = 16)]
    k: usize,
    /// Forces a routine.
    #[arg(long, value_parser = routine)]
    routine: Option<Routine>,
    /// Query rows per batch.
    #[arg(long)]
    query_batch: Option<usize>,
    /// Index rows per batch.
    #[arg(long)]
    index_batch: Option<usize>,
    /// Times one call by the wall clock, compilation included; for cases that take minutes.
    #[arg(long)]
    once: bool,
    /// Appends one JSON line per file and metric.
    #[arg(long)]
    json: Option<PathBuf>,
}

/// A routine by name.
pub fn routine(text: &str) -> Result<Routine, String> {
    let renamed = match text {
        "tiled" => "dense_tile",
        "product" => "tensor_core",
        other => other,
    };
    let mut routines = ROUTINES.into_iter();
    let named = routines.find(|one| [text, renamed].contains(&one.name()));
    let names = ROUTINES.map(Routine::name).join(", ");
    named.ok_or_else(|| format!("{text}: not one of {names}"))
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let backend = arguments.backend.open().map_err(anyhow::Error::msg)?;
    let copy_gbps = match &backend.client {
        // Pools later allocate in pages of their largest buffer, so the copy stays small.
        Some(client) => copy::rate(client, copy::elements(&backend) / 4)?,
        None => 0.0,
    };
    say!("{} ({}): copy {copy_gbps:.0} GB/s", arguments.backend, backend.label);
    let metrics = match arguments.all_metrics {
        true => Metric::ALL,
        false => &arguments.metrics,
    };
    for name in &arguments.data {
        let set = Set::load(name, &backend.device)?;
        say!("{}: {}", set.case, set.size());
        for &metric in metrics {
            one(arguments, &backend, &set, metric, copy_gbps)
                .with_context(|| format!("{name}, {metric}"))?;
        }
    }
    Ok(())
}

pub struct Set {
    pub case: String,
    dist: &'static str,
    index: Csr,
    work: f64,
}

impl Set {
    pub fn load(name: &str, device: &Device) -> anyhow::Result<Self> {
        let path = Path::new(name);
        let (case, dist, index) = match synthetic::matrix(name, device) {
            Some(made) => (name.into(), "synthetic", made?),
            None => {
                let stem = path.file_stem().unwrap_or_default().to_string_lossy();
                (stem.into(), "data", Csr::from_npz(path, device)?)
            }
        };
        let work = work(&index);
        Ok(Self { case, dist, index, work })
    }

    fn size(&self) -> String {
        let (rows, cols, nnz) = (self.index.rows(), self.index.cols(), self.index.nnz());
        let ratio = rows as f64 * nnz as f64 / self.work;
        format!(
            "{rows} x {cols}, {nnz} entries, rows x entries {ratio:.1} times the pairs of entries \
             that share a column"
        )
    }

    /// Compulsory traffic in bytes: the matrix, 12 bytes per entry, and the neighbors.
    pub fn compulsory_bytes(&self, k: usize) -> usize {
        12 * self.index.nnz() + self.bytes(k)[1]
    }

    /// Entries of each row.
    pub fn degrees(&self) -> impl Iterator<Item = usize> {
        self.index.pattern().indptr().windows(2).map(|row| (row[1] - row[0]) as usize)
    }

    /// Finds and checks the neighbors of each row.
    pub fn ready(
        &self,
        metric: Metric,
        routine: Option<Routine>,
        k: usize,
    ) -> anyhow::Result<Ready<'static>> {
        let measure = Measure::from(metric).with_routine(routine);
        let fitted = NearestNeighbors::fit(self.index.clone(), measure);
        fitted.kneighbors(None, k)?;
        let run = move || fitted.kneighbors(None, k).expect("it ran before");
        let check = |found| check(&self.index, metric, found);
        Ready::tensors(&self.index.device(), run, check)
    }

    /// Bytes of the matrix and of the neighbors.
    fn bytes(&self, k: usize) -> [usize; 2] {
        let (rows, nnz) = (self.index.rows(), self.index.nnz());
        let size = self.index.dtype().size();
        let index = DType::from(self.index.device().settings().int_dtype).size();
        let matrix = (rows + 1 + nnz) * size_of::<i32>() + nnz * size;
        [matrix, rows * k * (size + index)]
    }
}

fn one(
    arguments: &Arguments,
    backend: &Backend,
    set: &Set,
    metric: Metric,
    copy_gbps: f64,
) -> anyhow::Result<()> {
    let (index, k) = (&set.index, arguments.k);
    let measure = Measure::from(metric).with_routine(arguments.routine);
    let mut fitted = NearestNeighbors::fit(index.clone(), measure);
    if let Some(rows) = arguments.query_batch {
        fitted = fitted.with_query_batch(rows);
    }
    if let Some(rows) = arguments.index_batch {
        fitted = fitted.with_index_batch(rows);
    }
    let neighbors = || fitted.kneighbors(None, k);
    backend.device.sync()?;
    backend.device.memory_cleanup();
    let mut found = None;
    let first_ms = wall_clock(|| {
        found = Some(neighbors()?);
        Ok(backend.device.sync()?)
    })?;
    // Pools never shrink, so this is the peak.
    let peak = backend.device.memory_pool_usage();
    let peak_bytes = peak.map(|usage| usage.bytes_reserved);
    let checked = check(index, metric, found.take().expect("a call has been made"))?;
    let median = match arguments.once {
        true => None,
        false => Some(measure_tensors(&backend.device, || {
            drop(neighbors().expect("it has been checked"));
        })?),
    };
    let ms = median.map_or(first_ms, |median| median.ms);
    let [input_bytes, output_bytes] = set.bytes(k);
    let at_rate = |bytes: f64| match copy_gbps > 0.0 {
        true => bytes / copy_gbps / 1e6,
        false => 0.0,
    };
    let rows = index.rows() as f64;
    let record = NeighborRecord {
        bench: "distance".into(),
        case: set.case.clone(),
        backend: arguments.backend.to_string(),
        device: backend.label.clone(),
        dtype: format!("{:?}", index.dtype()).to_lowercase(),
        method: metric.to_string(),
        routine: arguments.routine.map_or("auto", Routine::name).into(),
        dist: set.dist.into(),
        k,
        ms,
        spread: median.map(|median| median.spread),
        first_ms,
        floor_ms: at_rate(set.compulsory_bytes(k) as f64),
        matrix_ms: at_rate(4.0 * rows * rows),
        work: set.work,
        gwork_per_s: set.work / ms / 1e6,
        ps_per_work: ms * 1e9 / set.work,
        copy_gbps,
        input_bytes,
        output_bytes,
        peak_bytes,
        checked,
    };
    say!("{}", line(&record));
    if let Some(path) = &arguments.json {
        record::append(path, &record)?;
    }
    Ok(())
}

fn line(record: &NeighborRecord) -> String {
    let NeighborRecord { ms, floor_ms, .. } = record;
    let mib = |bytes: f64| bytes / f64::from(1 << 20);
    let memory = record.peak_bytes.map_or(String::new(), |peak| {
        let operands = (record.input_bytes + record.output_bytes) as f64;
        let beside = mib(peak as f64 - operands);
        format!(", {beside:.0} MiB besides matrix and neighbors")
    });
    let floor = match *floor_ms > 0.0 {
        true => format!(
            ", {:.0} x floor ({floor_ms:.4} ms; {:.3} ms to write all distances)",
            ms / floor_ms,
            record.matrix_ms
        ),
        false => String::new(),
    };
    format!(
        "{} {} {}: {ms:.3} ms, {:.2} ps per pair of entries that share a column{floor}{memory}, \
         first call {:.0} ms",
        record.case, record.method, record.routine, record.ps_per_work, record.first_ms,
    )
}

/// Pairs of entries that share a column: the sum of squared column counts.
fn work(index: &Csr) -> f64 {
    let mut counts = vec![0.0; index.cols()];
    for &column in index.pattern().indices() {
        counts[column as usize] += 1.0;
    }
    counts.iter().map(|count: &f64| count * count).sum()
}
