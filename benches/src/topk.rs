//! Row-wise top-k, at the level of the kernels.

use std::{fs::File, io::Write, path::PathBuf};

use anyhow::{Context, bail, ensure};
use bytemuck::cast_slice;
use clap::ValueEnum;
use cubecl::{client::Client, prelude::*};
use half::{bf16, f16};
use rayon::prelude::*;
use sparsek_kernels::topk::{Method, Rows, TopkOptions, topk, topk_mask};
use sparsek_tests::{
    backend::{Backend, Kind},
    data::{Distribution, Random},
    element::Element,
    oracle,
};

use crate::{
    case::RowCase,
    copy,
    record::Record,
    timing::{measure, wall_clock},
};

/// Rows compared with the oracle, spread evenly over the matrix.
const CHECKED_ROWS: usize = 1 << 15;

/// Checks and times row-wise top-k.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where to run.
    #[arg(long)]
    backend: Kind,
    /// Rows x columns x k, for example 2**20x256x32; may be repeated.
    #[arg(long = "case", default_value = "2**16x256x32")]
    cases: Vec<RowCase>,
    /// exact, early:N or precision:EPS; may be repeated.
    #[arg(long = "method", default_value = "exact")]
    methods: Vec<String>,
    /// Distribution of the input, by the suite's names; may be repeated.
    #[arg(long = "dist", default_value = "normal", value_parser = distribution)]
    dists: Vec<Distribution>,
    /// Type of the elements; may be repeated.
    #[arg(long = "dtype", value_enum, default_value = "f32")]
    dtypes: Vec<Dtype>,
    /// Values and indices in index order, the same by value, or the dense masked rows.
    #[arg(long, value_enum, default_value_t = Form::Pairs)]
    form: Form,
    /// Appends one JSON line per case.
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    Pairs,
    Sorted,
    Mask,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Dtype {
    F32,
    F16,
    Bf16,
    F64,
    I32,
}

/// Runs every case with every method.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let backend = arguments.backend.open().map_err(anyhow::Error::msg)?;
    let Some(client) = &backend.client else {
        bail!("{} has no kernels to time", arguments.backend);
    };
    let copy_elements = if backend.is_llvmpipe() || arguments.backend == Kind::Cpu {
        1 << 22
    } else {
        1 << 28
    };
    let copy_gbps = copy::rate(client, copy_elements)?;
    println!(
        "{} ({}): copy {copy_gbps:.0} GB/s",
        arguments.backend, backend.label
    );
    for case in &arguments.cases {
        for &dist in &arguments.dists {
            for &dtype in &arguments.dtypes {
                let run = match dtype {
                    Dtype::F32 => methods::<f32>,
                    Dtype::F16 => methods::<f16>,
                    Dtype::Bf16 => methods::<bf16>,
                    Dtype::F64 => methods::<f64>,
                    Dtype::I32 => methods::<i32>,
                };
                run(&backend, client, arguments, case, dist, copy_gbps)?;
            }
        }
    }
    Ok(())
}

/// Runs a case with every method on the same input.
fn methods<T: Element>(
    backend: &Backend,
    client: &Client,
    arguments: &Arguments,
    case: &RowCase,
    dist: Distribution,
    copy_gbps: f64,
) -> anyhow::Result<()> {
    let input = rows::<T>(case.rows, case.cols, dist);
    for text in &arguments.methods {
        let method = method(text)?;
        let (ms, first_ms, checked) = time(client, case, method, arguments.form, &input)
            .with_context(|| format!("{case}, {text}, {dist:?}, {}", T::NAME))?;
        let size = size_of::<T>();
        let bytes = match arguments.form {
            Form::Pairs | Form::Sorted => {
                case.rows * (size * case.cols + (size + size_of::<u32>()) * case.k)
            }
            Form::Mask => case.rows * 2 * size * case.cols,
        };
        let record = Record {
            bench: "topk".into(),
            case: case.text.clone(),
            backend: arguments.backend.to_string(),
            device: backend.label.clone(),
            dtype: T::NAME.into(),
            method: text.clone(),
            form: format!("{:?}", arguments.form).to_lowercase(),
            dist: dist.name(),
            ms,
            first_ms,
            floor_ms: bytes as f64 / copy_gbps / 1e6,
            copy_gbps,
            checked,
        };
        println!(
            "{case} {} {text} {} {}: {ms:.4} ms, {:.2} x floor ({:.4} ms), {:.0} GB/s, first call {first_ms:.0} ms, {checked} rows checked",
            record.dtype,
            record.form,
            record.dist,
            ms / record.floor_ms,
            record.floor_ms,
            bytes as f64 / ms / 1e6,
        );
        if let Some(path) = &arguments.json {
            let mut file = File::options().create(true).append(true).open(path)?;
            writeln!(file, "{}", serde_json::to_string(&record)?)?;
        }
    }
    Ok(())
}

fn method(text: &str) -> anyhow::Result<Method> {
    Ok(match text.split_once(':') {
        None if text == "exact" => Method::Exact,
        Some(("early", steps)) => Method::EarlyStop(steps.parse()?),
        Some(("precision", eps)) => Method::Precision(eps.parse()?),
        _ => bail!("{text}: a method is exact, early:N or precision:EPS"),
    })
}

fn distribution(text: &str) -> Result<Distribution, String> {
    let mut all = Distribution::ALL.into_iter();
    all.find(|dist| dist.name() == text).ok_or_else(|| {
        let names = Distribution::ALL.map(Distribution::name);
        format!("not one of {}", names.join(", "))
    })
}

/// Seeded rows.
fn rows<T: Element>(rows: usize, cols: usize, dist: Distribution) -> Vec<T> {
    let mut values = vec![T::of(0.0); rows * cols];
    values
        .par_chunks_mut(cols)
        .enumerate()
        .for_each(|(seed, row)| {
            row.copy_from_slice(&dist.row::<T>(cols, &mut Random::new(seed as u64)))
        });
    values
}

fn same<T: Element>(found: &[T], right: impl Iterator<Item = T>) -> bool {
    found.iter().zip(right).all(|(a, b)| a.same(b))
}

fn time<T: Element>(
    client: &Client,
    case: &RowCase,
    method: Method,
    form: Form,
    input: &[T],
) -> anyhow::Result<(f64, f64, usize)> {
    let options = TopkOptions {
        method,
        sorted: form == Form::Sorted,
        ..TopkOptions::new(case.k)
    };
    let handle = client.create_from_slice(cast_slice(input));
    let rows = Rows::contiguous(handle, T::elem_type(), case.rows, case.cols);
    let index = u32::elem_type_native();
    let run = || match form {
        Form::Pairs | Form::Sorted => {
            drop(topk(client, &rows, &options, index, None).expect("a valid case"))
        }
        Form::Mask => drop(topk_mask(client, &rows, &options, None, None).expect("a valid case")),
    };
    let first_ms = wall_clock(client, run)?;
    let step = case.rows.div_ceil(CHECKED_ROWS).max(1);
    let sample: Vec<usize> = (0..case.rows).rev().step_by(step).collect();
    let expected =
        |row: usize| oracle::topk::select(&input[row * case.cols..][..case.cols], &options);
    match form {
        Form::Pairs | Form::Sorted => {
            let selected = topk(client, &rows, &options, index, None)?;
            let values = client.read_one(selected.values)?;
            let indices = client.read_one(selected.indices)?;
            let (values, indices) = (cast_slice::<u8, T>(&values), u32::from_bytes(&indices));
            let wrong = sample.par_iter().find_any(|&&row| {
                let range = row * case.k..(row + 1) * case.k;
                let members = expected(row);
                let found = indices[range.clone()].iter().map(|&i| i as usize);
                let right = members.iter().map(|&i| input[row * case.cols + i]);
                !found.eq(members.iter().copied()) || !same(&values[range], right)
            });
            ensure!(wrong.is_none(), "row {wrong:?} differs from the oracle");
        }
        Form::Mask => {
            let masked = topk_mask(client, &rows, &options, None, None)?;
            let values = client.read_one(masked.values)?;
            let values = cast_slice::<u8, T>(&values);
            let wrong = sample.par_iter().find_any(|&&row| {
                let range = row * case.cols..(row + 1) * case.cols;
                let mut right = vec![T::of(0.0); case.cols];
                for i in expected(row) {
                    right[i] = input[range.start + i];
                }
                !same(&values[range], right.into_iter())
            });
            ensure!(wrong.is_none(), "row {wrong:?} differs from the oracle");
        }
    }
    let ms = measure(client, run)?;
    Ok((ms, first_ms, sample.len()))
}
