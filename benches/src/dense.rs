//! Nearest neighbors among dense rows.

use std::{path::PathBuf, str::FromStr};

use anyhow::ensure;
use burn::tensor::{DType, Int, Tensor, TensorData};
use sparsek::{
    distance::{DistanceError, Measure, Metric, NearestNeighbors, Routine, ShardedNeighbors},
    sparse::Csr,
};
use sparsek_tests::{
    backend::{Backend, Kind},
    data::normals,
    oracle::distance,
};

use crate::{
    case::size,
    copy,
    distance::routine,
    record::{self, NeighborRecord},
    timing::{measure_ahead, wall_clock},
    vector::numbered_devices,
};

/// Queries that are checked.
const CHECKED: usize = 8;
/// Tolerance of an f32 distance: relative to itself, and to its scale.
const RELATIVE: f64 = 1e-5;
const OF_SCALE: f64 = 2e-6;

/// Checks and times nearest neighbors among dense rows, by the wall clock.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where to run.
    #[arg(long)]
    backend: Kind,
    /// Index rows x columns x queries x neighbors; may be repeated.
    #[arg(long = "case", default_value = "20000x128x500x10")]
    cases: Vec<Case>,
    /// A metric by name; may be repeated.
    #[arg(long = "metric", default_value = "euclidean")]
    metrics: Vec<Metric>,
    /// Normal numbers around this one.
    #[arg(long, default_value_t = 0.0)]
    mean: f64,
    /// Also times rows shared among these devices of the backend, by number.
    #[arg(long, value_delimiter = ',')]
    devices: Vec<usize>,
    /// Forces a routine, for metrics that compress dense rows.
    #[arg(long, value_parser = routine)]
    routine: Option<Routine>,
    /// Also times the same rows as a CSR matrix.
    #[arg(long)]
    sparse: bool,
    /// Appends one JSON line per case, metric and kind of rows.
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Sizes on the command line.
#[derive(Clone, Debug)]
struct Case {
    text: String,
    rows: usize,
    cols: usize,
    queries: usize,
    k: usize,
}

impl FromStr for Case {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let sizes: Vec<usize> = text.split('x').map(size).collect::<anyhow::Result<_>>()?;
        let [rows, cols, queries, k] = sizes[..] else {
            anyhow::bail!("{text}: a case is NxDxQxK, for example 20000x128x500x10");
        };
        ensure!(k <= rows, "{text}: {k} neighbors of {rows} rows");
        Ok(Self { text: text.into(), rows, cols, queries, k })
    }
}

/// Numbers on both sides.
struct Rows {
    data: Vec<f32>,
    cols: usize,
    tensor: Tensor<2>,
}

impl Rows {
    fn new(backend: &Backend, [rows, cols]: [usize; 2], mean: f64, seed: u64) -> Self {
        let data = normals(rows * cols, seed).into_iter().map(|x| (x + mean) as f32);
        let data: Vec<f32> = data.collect();
        let tensor = TensorData::new(data.clone(), [rows, cols]);
        Self { data, cols, tensor: Tensor::from_data(tensor, &backend.device) }
    }

    fn row(&self, row: usize) -> Vec<f64> {
        self.data[row * self.cols..][..self.cols].iter().map(|&x| x.into()).collect()
    }
}

/// Index, queries and options.
struct Problem<'a> {
    arguments: &'a Arguments,
    backend: &'a Backend,
    case: &'a Case,
    metric: Metric,
    index: &'a Rows,
    query: &'a Rows,
    copy_gbps: f64,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let backend = arguments.backend.open().map_err(anyhow::Error::msg)?;
    let copy_gbps = match &backend.client {
        Some(client) => copy::rate(client, copy::elements(&backend) / 4)?,
        None => 0.0,
    };
    say!("{} ({}): copy {copy_gbps:.0} GB/s", arguments.backend, backend.label);
    for case in &arguments.cases {
        let index = Rows::new(&backend, [case.rows, case.cols], arguments.mean, 1);
        let query = Rows::new(&backend, [case.queries, case.cols], arguments.mean, 2);
        for &metric in &arguments.metrics {
            let (backend, index, query) = (&backend, &index, &query);
            let problem = Problem { arguments, backend, case, metric, index, query, copy_gbps };
            let [x, q] = [index, query].map(|rows| rows.tensor.clone());
            let measure = Measure::from(metric).with_routine(arguments.routine);
            let kind = arguments.routine.map_or("dense", Routine::name);
            let fitted = NearestNeighbors::fit(x.clone(), measure);
            let dense = problem.time(kind, || fitted.kneighbors(Some(&q), case.k))?;
            if !arguments.devices.is_empty() {
                let devices = numbered_devices(&problem.backend.devices(), &arguments.devices)?;
                let share = case.rows.div_ceil(devices.len()) * case.cols;
                let shards = index.data.chunks(share).zip(&devices).map(|(part, device)| {
                    let shape = [part.len() / case.cols, case.cols];
                    Tensor::<2>::from_data(TensorData::new(part.to_vec(), shape), device)
                });
                let fitted = ShardedNeighbors::fit(shards.collect(), measure)?;
                let kind = format!("{} devices", devices.len());
                let ms = problem.time(&kind, || fitted.kneighbors(&q, case.k))?;
                say!("{} {metric}: {kind} {:.2} x one", case.text, dense / ms);
            }
            if arguments.sparse {
                let (x, q) = (Csr::from_dense(x)?, Csr::from_dense(q)?);
                let fitted = NearestNeighbors::fit(x, measure);
                let sparse = problem.time("sparse", || fitted.kneighbors(Some(&q), case.k))?;
                say!("{} {metric}: sparse / dense {:.2}", case.text, sparse / dense);
            }
        }
    }
    Ok(())
}

impl Problem<'_> {
    /// Checks, times and records a search; returns milliseconds.
    fn time(
        &self,
        kind: &str,
        neighbors: impl Fn() -> Result<(Tensor<2>, Tensor<2, Int>), DistanceError>,
    ) -> anyhow::Result<f64> {
        let Self { case, metric, backend, .. } = self;
        let mut found = None;
        let first_ms = wall_clock(|| {
            found = Some(neighbors()?);
            Ok(backend.device.sync()?)
        })?;
        let checked = self.check(found.expect("a call has been made"))?;
        let median = measure_ahead(&backend.device, || {
            drop(neighbors().expect("it has been checked"));
        })?;
        let work = (case.rows * case.cols) as f64 * case.queries as f64;
        say!(
            "{} {metric} {kind}: {:.3} ms, {:.1} G multiplications per second, first call {:.0} ms",
            case.text,
            median.ms,
            work / median.ms / 1e6,
            first_ms
        );
        if let Some(path) = &self.arguments.json {
            record::append(
                path,
                &self.record(kind, work, (median.ms, median.spread), first_ms, checked),
            )?;
        }
        Ok(median.ms)
    }

    fn record(
        &self,
        kind: &str,
        work: f64,
        (ms, spread): (f64, f64),
        first_ms: f64,
        checked: usize,
    ) -> NeighborRecord {
        let Self { case, backend, copy_gbps, .. } = self;
        let index = DType::from(backend.device.settings().int_dtype).size();
        let input_bytes = (case.rows + case.queries) * case.cols * size_of::<f32>();
        let output_bytes = case.queries * case.k * (size_of::<f32>() + index);
        let at_rate = |bytes: usize| match *copy_gbps > 0.0 {
            true => bytes as f64 / copy_gbps / 1e6,
            false => 0.0,
        };
        NeighborRecord {
            bench: "dense".into(),
            case: case.text.clone(),
            backend: self.arguments.backend.to_string(),
            device: backend.label.clone(),
            dtype: "f32".into(),
            method: self.metric.to_string(),
            routine: kind.into(),
            dist: format!("normal+{}", self.arguments.mean),
            k: case.k,
            ms,
            spread: Some(spread),
            first_ms,
            floor_ms: at_rate(input_bytes + output_bytes),
            matrix_ms: at_rate(case.queries * case.rows * size_of::<f32>()),
            work,
            gwork_per_s: work / ms / 1e6,
            ps_per_work: ms * 1e9 / work,
            copy_gbps: *copy_gbps,
            input_bytes,
            output_bytes,
            peak_bytes: None,
            checked,
        }
    }

    /// Compares some queries with the oracle; returns their number.
    fn check(&self, (distances, indices): (Tensor<2>, Tensor<2, Int>)) -> anyhow::Result<usize> {
        let (name, p, k) = (self.metric.name(), self.metric.p(), self.case.k);
        let index: Vec<Vec<f64>> = (0..self.case.rows).map(|row| self.index.row(row)).collect();
        let distances: Vec<f64> = distances.into_data().iter::<f64>().collect();
        let indices: Vec<i64> = indices.into_data().iter::<i64>().collect();
        let step = self.case.queries.div_ceil(CHECKED).max(1);
        let checked: Vec<usize> = (0..self.case.queries).step_by(step).collect();
        for &query in &checked {
            let row = self.query.row(query);
            let expected = distance::nearest(name, p, &row, &index, k, None);
            let mut seen = indices[query * k..][..k].to_vec();
            seen.sort_unstable();
            seen.dedup();
            ensure!(seen.len() == k, "query {query}: {} neighbors", seen.len());
            for (slot, &(nearest, wanted)) in expected.iter().enumerate() {
                let (at, found) = (indices[query * k + slot], distances[query * k + slot]);
                let other = &index[usize::try_from(at)?];
                let real = distance::distance(name, p, &row, other);
                let scale = OF_SCALE * distance::scale(name, p, &row, other);
                let near = |a: f64, b: f64| a == b || (a - b).abs() <= scale + RELATIVE * b.abs();
                ensure!(
                    near(found, real) && near(real, wanted),
                    "query {query}, neighbor {slot}: row {at} at {found} (exactly {real}) instead \
                     of {nearest} at {wanted}"
                );
            }
        }
        Ok(checked.len())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    fn cases_have_four_sizes() {
        let case: Case = "2**10x64x5x3".parse().unwrap();
        assert_eq!([case.rows, case.cols, case.queries, case.k], [1024, 64, 5, 3]);
        assert!("10x5x1".parse::<Case>().is_err());
        assert!("10x5x1x11".parse::<Case>().is_err());
    }
}
