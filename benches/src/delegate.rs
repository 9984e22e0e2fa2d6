//! Top-k of one vector.

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use bytemuck::cast_slice;
use cubecl::{client::Client, future, prelude::*};
use rayon::prelude::*;
use serde::Serialize;
use sparsek_kernels::topk::{Filter, Selection, Subrange, VectorOptions, topk_vector};
use sparsek_tests::{
    backend::Kind,
    data::Distribution,
    element::{Dtype, Element},
    with_dtype,
};

use crate::{
    case::VectorCase,
    copy, record,
    timing::{measure, wall_clock},
    topk::{distribution, seeded_rows},
};

/// Elements that share a seed.
const SEEDED: usize = 1 << 16;

/// Checks and times top-k of one vector.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where to run.
    #[arg(long)]
    backend: Kind,
    /// Elements x k, for example 2**30x128; may be repeated.
    #[arg(long = "case", default_value = "2**24x128")]
    cases: Vec<VectorCase>,
    /// delegates (subranges by Rule 4), alpha:N (of 2^N elements) or whole (no delegates), each also with
    /// `/beta:N` (delegates of each subrange), `/radix`, `/bucket`, `/bitonic`, `/rows`, `/filter`, `/unfiltered`; may be repeated.
    #[arg(long = "method", default_value = "delegates")]
    methods: Vec<String>,
    /// Distribution of the input, by the suite's names; may be repeated.
    #[arg(long = "dist", default_value = "uniform", value_parser = distribution)]
    dists: Vec<Distribution>,
    /// Type of the elements; may be repeated.
    #[arg(long = "dtype", value_enum, default_value = "f32")]
    dtypes: Vec<Dtype>,
    /// Appends one JSON line per case and method.
    #[arg(long)]
    json: Option<PathBuf>,
}

/// A line of a record.
#[derive(Serialize)]
struct Record {
    bench: &'static str,
    case: String,
    backend: String,
    device: String,
    dtype: &'static str,
    method: String,
    dist: String,
    ms: f64,
    first_ms: f64,
    /// One read.
    floor_ms: f64,
    read_gbps: f64,
    copy_gbps: f64,
    checked: usize,
}

/// Runs every case with every method.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let backend = arguments.backend.open().map_err(anyhow::Error::msg)?;
    let client = (backend.client.as_ref()).context("no kernels on this backend")?;
    let elements = copy::elements(&backend);
    let copy_gbps = copy::rate(client, elements)?;
    let read_gbps = copy::read_rate(client, elements)?;
    println!(
        "{} ({}): copy {copy_gbps:.0} GB/s, read {read_gbps:.0} GB/s",
        arguments.backend, backend.label
    );
    let bench = Bench {
        client,
        arguments,
        device: backend.label.clone(),
        copy_gbps,
        read_gbps,
    };
    for case in &arguments.cases {
        for &dist in &arguments.dists {
            for dtype in &arguments.dtypes {
                with_dtype!(dtype, T => bench.methods::<T>(case, dist)?);
            }
        }
    }
    Ok(())
}

struct Bench<'a> {
    client: &'a Client,
    arguments: &'a Arguments,
    device: String,
    copy_gbps: f64,
    read_gbps: f64,
}

impl Bench<'_> {
    fn methods<T: Element>(&self, case: &VectorCase, dist: Distribution) -> anyhow::Result<()> {
        let VectorCase { length, k, .. } = *case;
        let rows = length.div_ceil(SEEDED);
        let mut input = seeded_rows::<T>(rows, SEEDED, dist, 0);
        input.truncate(length);
        let handle = self.client.create_from_slice(cast_slice(&input));
        for text in &self.arguments.methods {
            let options = options(text, k)?;
            let index = i64::elem_type_native();
            let launch = || {
                topk_vector(
                    self.client,
                    &handle,
                    T::elem_type(),
                    length,
                    &options,
                    index,
                )
            };
            let first_ms = wall_clock(|| {
                launch()?;
                Ok(future::block_on(self.client.sync())?)
            })?;
            let selected = launch()?;
            let values = self.client.read_one(selected.values)?;
            let indices = i64::from_bytes(&self.client.read_one(selected.indices)?).to_vec();
            check::<T>(&input, &cast_slice(&values)[..k], &indices[..k])
                .with_context(|| format!("{case}, {text}, {dist:?}, {}", T::NAME))?;
            let ms = measure(self.client, || drop(launch().expect("a valid case")))?;
            let record = Record {
                bench: "delegate",
                case: case.text.clone(),
                backend: self.arguments.backend.to_string(),
                device: self.device.clone(),
                dtype: T::NAME,
                method: text.clone(),
                dist: dist.name(),
                ms,
                first_ms,
                floor_ms: (length * size_of::<T>()) as f64 / self.read_gbps / 1e6,
                read_gbps: self.read_gbps,
                copy_gbps: self.copy_gbps,
                checked: length,
            };
            println!(
                "{case} {} {text} {}: {ms:.4} ms, {:.2} x one read ({:.4} ms), first call {first_ms:.0} ms",
                T::NAME,
                record.dist,
                ms / record.floor_ms,
                record.floor_ms
            );
            if let Some(path) = &self.arguments.json {
                record::append(path, &record)?;
            }
        }
        Ok(())
    }
}

fn options(text: &str, k: usize) -> anyhow::Result<VectorOptions> {
    let mut options = VectorOptions::new(k);
    for part in text.split('/') {
        match part.split_once(':').unwrap_or((part, "")) {
            ("delegates", "") => {}
            ("whole", "") => options.subrange = Subrange::Whole,
            ("alpha", exponent) => options.subrange = Subrange::Exponent(exponent.parse()?),
            ("beta", delegates) => options.delegates = delegates.parse()?,
            ("rows", "") => options.selection = Selection::Rows,
            ("radix", "") => options.selection = Selection::Radix,
            ("bucket", "") => options.selection = Selection::Bucket,
            ("bitonic", "") => options.selection = Selection::Bitonic,
            ("filter", "") => options.filter = Filter::On,
            ("unfiltered", "") => options.filter = Filter::Off,
            _ => bail!(
                "{text}: a method is delegates, alpha:N or whole, then /beta:N, /radix, /bucket, /bitonic, /rows, /filter, /unfiltered"
            ),
        }
    }
    Ok(options)
}

/// Whether these are the k greatest, ties to the lowest index, in index order. For inputs without NaN.
fn check<T: Element>(input: &[T], values: &[T], indices: &[i64]) -> anyhow::Result<()> {
    ensure!(
        indices.is_sorted_by(|a, b| a < b),
        "indices are not in order"
    );
    let there = indices.iter().zip(values);
    ensure!(
        there
            .clone()
            .all(|(&at, value)| input[at as usize].same(*value)),
        "values are not those of the indices"
    );
    let least = values.iter().map(|value| value.wide_f64()).reduce(f64::min);
    let least = least.context("k is zero")?;
    let above = values.iter().filter(|value| value.wide_f64() > least);
    let (above, level) = (above.count(), |value: &T| value.wide_f64() == least);
    let found = input.par_iter().filter(|value| value.wide_f64() > least);
    ensure!(found.count() == above, "greater elements are missing");
    let last = there.filter(|(_, value)| level(value)).map(|(at, _)| *at);
    let last = last.max().context("no least member")? as usize;
    let first = input[..=last].par_iter().filter(|value| level(value));
    ensure!(
        first.count() == values.len() - above,
        "equal elements are not the first"
    );
    Ok(())
}
