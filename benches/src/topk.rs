//! Row-wise top-k, at the level of the kernels.

use std::{fs::File, io::Write, path::PathBuf};

use anyhow::{Context, bail, ensure};
use clap::ValueEnum;
use cubecl::{client::Client, prelude::*};
use rand::{SeedableRng, rngs::SmallRng};
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use serde::Serialize;
use sparsek_kernels::topk::{Method, Rows, TopkOptions, topk, topk_mask};
use sparsek_tests::{backend::Kind, oracle};

use crate::{
    case::RowCase,
    copy,
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
    /// Values and indices, or the dense masked rows.
    #[arg(long, value_enum, default_value_t = Form::Pairs)]
    form: Form,
    /// Appends one JSON line per case.
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    Pairs,
    Mask,
}

/// One line of a record.
#[derive(Serialize)]
struct Record {
    bench: &'static str,
    case: String,
    backend: String,
    device: String,
    dtype: &'static str,
    method: String,
    form: String,
    dist: &'static str,
    ms: f64,
    first_ms: f64,
    floor_ms: f64,
    copy_gbps: f64,
    checked: usize,
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
        let input = normal(case.rows, case.cols);
        for text in &arguments.methods {
            let method = method(text)?;
            let (ms, first_ms, checked) = time(client, case, method, arguments.form, &input)
                .with_context(|| format!("{case}, {text}"))?;
            let bytes = match arguments.form {
                Form::Pairs => case.rows * (4 * case.cols + 8 * case.k),
                Form::Mask => case.rows * 8 * case.cols,
            };
            let record = Record {
                bench: "topk",
                case: case.text.clone(),
                backend: arguments.backend.to_string(),
                device: backend.label.clone(),
                dtype: "f32",
                method: text.clone(),
                form: format!("{:?}", arguments.form).to_lowercase(),
                dist: "normal",
                ms,
                first_ms,
                floor_ms: bytes as f64 / copy_gbps / 1e6,
                copy_gbps,
                checked,
            };
            println!(
                "{case} {text} {}: {ms:.4} ms, {:.2} x floor ({:.4} ms), {:.0} GB/s, first call {first_ms:.0} ms, {checked} rows checked",
                record.form,
                ms / record.floor_ms,
                record.floor_ms,
                bytes as f64 / ms / 1e6,
            );
            if let Some(path) = &arguments.json {
                let mut file = File::options().create(true).append(true).open(path)?;
                writeln!(file, "{}", serde_json::to_string(&record)?)?;
            }
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

/// Seeded normal values.
fn normal(rows: usize, cols: usize) -> Vec<f32> {
    let mut values = vec![0.0f32; rows * cols];
    values
        .par_chunks_mut(1 << 16)
        .enumerate()
        .for_each(|(seed, chunk)| {
            let mut rng = SmallRng::seed_from_u64(seed as u64);
            chunk.fill_with(|| StandardNormal.sample(&mut rng));
        });
    values
}

fn time(
    client: &Client,
    case: &RowCase,
    method: Method,
    form: Form,
    input: &[f32],
) -> anyhow::Result<(f64, f64, usize)> {
    let options = TopkOptions {
        method,
        ..TopkOptions::new(case.k)
    };
    let handle = client.create_from_slice(bytemuck::cast_slice(input));
    let rows = Rows::contiguous(handle, f32::elem_type_native(), case.rows, case.cols);
    let index = u32::elem_type_native();
    let run = || match form {
        Form::Pairs => drop(topk(client, &rows, &options, index, None).expect("a valid case")),
        Form::Mask => drop(topk_mask(client, &rows, &options, None, None).expect("a valid case")),
    };
    let first_ms = wall_clock(client, run)?;
    let step = case.rows.div_ceil(CHECKED_ROWS).max(1);
    let sample: Vec<usize> = (0..case.rows).rev().step_by(step).collect();
    let expected =
        |row: usize| oracle::topk::select(&input[row * case.cols..][..case.cols], &options);
    match form {
        Form::Pairs => {
            let selected = topk(client, &rows, &options, index, None)?;
            let values = client.read_one(selected.values)?;
            let indices = client.read_one(selected.indices)?;
            let (values, indices) = (f32::from_bytes(&values), u32::from_bytes(&indices));
            let wrong = sample.par_iter().find_any(|&&row| {
                let range = row * case.k..(row + 1) * case.k;
                let members = expected(row);
                let found = indices[range.clone()].iter().map(|&i| i as usize);
                let right = members.iter().map(|&i| input[row * case.cols + i]);
                !found.eq(members.iter().copied()) || !values[range].iter().copied().eq(right)
            });
            ensure!(wrong.is_none(), "row {wrong:?} differs from the oracle");
        }
        Form::Mask => {
            let masked = topk_mask(client, &rows, &options, None, None)?;
            let values = client.read_one(masked.values)?;
            let values = f32::from_bytes(&values);
            let wrong = sample.par_iter().find_any(|&&row| {
                let range = row * case.cols..(row + 1) * case.cols;
                let mut right = vec![0.0; case.cols];
                for i in expected(row) {
                    right[i] = input[range.start + i];
                }
                values[range] != right[..]
            });
            ensure!(wrong.is_none(), "row {wrong:?} differs from the oracle");
        }
    }
    let ms = measure(client, run)?;
    Ok((ms, first_ms, sample.len()))
}
