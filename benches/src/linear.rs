//! Linear layers with many rows: the product, and the gradients of rows and weight.

use std::path::PathBuf;

use anyhow::ensure;
use burn::{
    backend::Dispatch,
    tensor::{Tensor, TensorData},
};
use rayon::prelude::*;
use sparsek::ops::{DenseGradientOps, DenseOps};
use sparsek_tests::backend::{Backend, Kind};

use crate::{
    case::RowCase,
    copy,
    record::{self, Record},
    spmm::number,
    timing::{Ready, measure_tensors},
};

const CHECKED: usize = 8;

/// Checks and times linear layers with many rows.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where to run.
    #[arg(long)]
    backend: Kind,
    /// Rows x inputs x outputs, for example 2449029x256x256; may be repeated.
    #[arg(long = "case", default_value = "2**18x256x256")]
    cases: Vec<RowCase>,
    /// What to compute; may be repeated. Default: all.
    #[arg(long = "method", value_enum, value_delimiter = ',', default_values_t = Method::ALL)]
    methods: Vec<Method>,
    /// Also times Burn's own products.
    #[arg(long)]
    burn: bool,
    /// Appends one JSON line for each case and method.
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Method {
    /// Rows times the weight.
    Output,
    /// The gradient of the rows: upstream rows times the transposed weight.
    Rows,
    /// The gradient of the weight: transposed rows times upstream rows.
    Weight,
}

impl Method {
    const ALL: [Self; 3] = [Self::Output, Self::Rows, Self::Weight];

    fn name(self) -> &'static str {
        match self {
            Self::Output => "output",
            Self::Rows => "rows",
            Self::Weight => "weight",
        }
    }
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

struct Matrix {
    data: Vec<f32>,
    cols: usize,
    tensor: Tensor<2>,
}

impl Matrix {
    fn new(backend: &Backend, [rows, cols]: [usize; 2], seed: u32) -> Self {
        let places = (0..rows * cols).into_par_iter();
        let data: Vec<f32> = places.map(|place| number(place, seed)).collect();
        let tensor = TensorData::new(data.clone(), [rows, cols]);
        Self { data, cols, tensor: Tensor::from_data(tensor, &backend.device) }
    }

    fn at(&self, row: usize, col: usize) -> f64 {
        self.data[row * self.cols + col].into()
    }
}

/// Factors of `x · weight`, `upstream · weightᵀ` and `xᵀ · upstream`.
struct Problem {
    case: RowCase,
    x: Matrix,
    weight: Matrix,
    upstream: Matrix,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let backend = arguments.backend.open().map_err(anyhow::Error::msg)?;
    let copy_gbps = copy::backend_rate(&backend)?;
    say!("{} ({}): copy {copy_gbps:.0} GB/s", arguments.backend, backend.label);
    for case in &arguments.cases {
        let (rows, inputs, outputs) = (case.rows, case.cols, case.k);
        let problem = Problem {
            case: case.clone(),
            x: Matrix::new(&backend, [rows, inputs], 17),
            weight: Matrix::new(&backend, [inputs, outputs], 19),
            upstream: Matrix::new(&backend, [rows, outputs], 23),
        };
        for &method in &arguments.methods {
            let record = problem.time(&backend, method, arguments.burn, copy_gbps)?;
            let burn = record.burn_ms.map(|ms| format!(", Burn {ms:.3} ms"));
            say!(
                "{case} {method}: {:.3} ms, {:.2} x floor{}",
                record.ms,
                record.ms / record.floor_ms,
                burn.unwrap_or_default()
            );
            if let Some(file) = &arguments.json {
                record::append(file, &record)?;
            }
        }
    }
    Ok(())
}

impl Problem {
    fn ours(&self, method: Method) -> Tensor<2> {
        let tensor = |matrix: &Matrix| matrix.tensor.clone().into_dispatch();
        let [x, weight, upstream] = [&self.x, &self.weight, &self.upstream].map(tensor);
        Tensor::from_dispatch(match method {
            Method::Output => <Dispatch as DenseOps>::linear_rows(x, weight),
            Method::Rows => <Dispatch as DenseGradientOps>::linear_rows_backward(weight, upstream),
            Method::Weight => <Dispatch as DenseGradientOps>::linear_rows_gradient(x, upstream),
        })
    }

    fn burns(&self, method: Method) -> Tensor<2> {
        let tensor = |matrix: &Matrix| matrix.tensor.clone();
        let [x, weight, upstream] = [&self.x, &self.weight, &self.upstream].map(tensor);
        match method {
            Method::Output => x.matmul(weight),
            Method::Rows => upstream.matmul(weight.transpose()),
            Method::Weight => x.transpose().matmul(upstream),
        }
    }

    /// Compares some rows with sums in f64. Factors may be rounded to 11 bits; sums are in f32.
    fn check(&self, method: Method, found: &Tensor<2>) -> anyhow::Result<usize> {
        let [count, width] = found.dims();
        let inner = match method {
            Method::Output => self.case.cols,
            Method::Rows => self.case.k,
            Method::Weight => self.case.rows,
        };
        let factors = |row: usize, col: usize, i: usize| match method {
            Method::Output => (self.x.at(row, i), self.weight.at(i, col)),
            Method::Rows => (self.upstream.at(row, i), self.weight.at(col, i)),
            Method::Weight => (self.x.at(i, row), self.upstream.at(i, col)),
        };
        let checked = CHECKED.min(count);
        for at in 0..checked {
            let row = at * (count - 1) / (checked - 1).max(1);
            let part = found.clone().slice([row..row + 1, 0..width]).into_data();
            let found: Vec<f32> = part.iter().collect();
            let zeros = || vec![[0.0; 2]; width];
            let add = |mut sums: Vec<[f64; 2]>, i: usize| {
                for (col, [sum, size]) in sums.iter_mut().enumerate() {
                    let (a, b) = factors(row, col, i);
                    *sum += a * b;
                    *size += (a * b).abs();
                }
                sums
            };
            let together = |mut sums: Vec<[f64; 2]>, others: Vec<[f64; 2]>| {
                for ([sum, size], [other, others]) in sums.iter_mut().zip(others) {
                    *sum += other;
                    *size += others;
                }
                sums
            };
            let sums = (0..inner).into_par_iter().fold(zeros, add).reduce(zeros, together);
            for (col, (&found, [sum, size])) in found.iter().zip(sums).enumerate() {
                let bound = (2f64.powi(-10) + 2f64.powi(-20)) * size;
                let off = (f64::from(found) - sum).abs();
                ensure!(
                    off <= bound,
                    "{} {method}: element ({row}, {col}) is {found} instead of {sum} ± {bound:e}",
                    self.case
                );
            }
        }
        Ok(checked)
    }

    fn time(
        &self,
        backend: &Backend,
        method: Method,
        burn: bool,
        copy_gbps: f64,
    ) -> anyhow::Result<Record> {
        let device = &backend.device;
        let run = || self.ours(method);
        let check = |found| self.check(method, &found);
        let times = Ready::tensors(device, run, check)?.measure()?;
        let (rows, inputs, outputs) = (self.case.rows, self.case.cols, self.case.k);
        let bytes = 4.0 * (rows * (inputs + outputs) + inputs * outputs) as f64;
        let burn_ms = match burn {
            true => Some(measure_tensors(device, || drop(self.burns(method)))?.ms),
            false => None,
        };
        Ok(Record {
            bench: "linear".into(),
            case: self.case.to_string(),
            backend: backend.kind.to_string(),
            device: backend.label.clone(),
            dtype: "f32".into(),
            method: method.name().into(),
            form: "matrix".into(),
            dist: "uniform".into(),
            ms: times.median.ms,
            spread: Some(times.median.spread),
            first_ms: times.first_ms,
            floor_ms: bytes / copy_gbps / 1e6,
            copy_gbps,
            checked: times.checked,
            burn_ms,
        })
    }
}
