//! Top-k of one vector: on one device, streamed through it, or sharded over several.

mod problem;
mod shards;
mod stream;

pub use shards::{Arguments as ShardArguments, run as run_shards};
pub use stream::{Arguments as StreamArguments, run as run_stream};

use std::path::PathBuf;

use anyhow::{Context, bail};
use bytemuck::cast_slice;
use cubecl::{client::Client, future, prelude::*};
use sparsek_kernels::{
    KernelError,
    topk::{
        Construction, Filter, Finish, Selection, Subrange, VectorOptions, topk_vector,
        topk_vector_stats,
    },
};
use sparsek_tests::{
    backend::Kind,
    data::Distribution,
    element::{Dtype, Element},
    with_dtype,
};

use self::problem::{check, vector};
use crate::{
    case::VectorCase,
    copy,
    record::{self, VectorRecord},
    timing::{measure, measure_launched, wall_clock},
    topk::distribution,
};

/// Checks and times top-k of one vector.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where to run.
    #[arg(long)]
    backend: Kind,
    /// Elements x k, for example 2**30x128; may be repeated.
    #[arg(long = "case", default_value = "2**24x128")]
    cases: Vec<VectorCase>,
    /// delegates (subranges by Rule 4), alpha:N (subranges of 2^N elements) or whole (no
    /// delegates), then options: /beta:N (delegates of each subrange), /staged (through shared
    /// memory), a selection, a finish, /filter or /unfiltered (Rule 2); may be repeated.
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

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let backend = arguments.backend.open().map_err(anyhow::Error::msg)?;
    let client = (backend.client.as_ref()).context("no kernels on this backend")?;
    let elements = copy::elements(&backend);
    let copy_gbps = copy::rate(client, elements)?;
    let read_gbps = copy::read_rate(client, elements)?;
    say!(
        "{} ({}): copy {copy_gbps:.0} GB/s, read {read_gbps:.0} GB/s",
        arguments.backend,
        backend.label
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
        let input = vector::<T>(length, dist);
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
            let first = wall_clock(|| {
                launch()?;
                Ok(future::block_on(self.client.sync())?)
            });
            let first_ms = match first {
                Err(error) if cannot_run(&error) => {
                    say!(
                        "{case} {} {text} {}: left out, {error}",
                        T::NAME,
                        dist.name()
                    );
                    continue;
                }
                first => first?,
            };
            let selected = launch()?;
            let values = self.client.read_one(selected.values)?;
            let indices = i64::from_bytes(&self.client.read_one(selected.indices)?).to_vec();
            check::<T>(&input, &cast_slice(&values)[..k], &indices[..k])
                .with_context(|| format!("{case}, {text}, {dist:?}, {}", T::NAME))?;
            let (_, stats) = topk_vector_stats(
                self.client,
                &handle,
                T::elem_type(),
                length,
                &options,
                index,
            )?;
            let run = || drop(launch().expect("a valid case"));
            let ms = measure(self.client, run)?;
            let launched_ms = measure_launched(self.client, run)?;
            let record = VectorRecord {
                bench: "delegate".into(),
                case: case.text.clone(),
                backend: self.arguments.backend.to_string(),
                device: self.device.clone(),
                dtype: T::NAME.into(),
                method: text.clone(),
                dist: dist.name(),
                ms,
                launched_ms: Some(launched_ms),
                first_ms,
                floor_ms: (length * size_of::<T>()) as f64 / self.read_gbps / 1e6,
                read_gbps: self.read_gbps,
                copy_gbps: self.copy_gbps,
                checked: length,
                delegates: stats.delegates,
                concatenated: stats.concatenated,
            };
            say!(
                "{case} {} {text} {}: {ms:.4} ms, {:.2} x one read ({:.4} ms), queued \
                 {launched_ms:.4} ms, first call {first_ms:.0} ms",
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

/// Whether the plan refused the method, for example because it has fewer subranges than k.
fn cannot_run(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref();
    matches!(
        error,
        Some(KernelError::Routine { .. } | KernelError::KTooLarge { .. })
    )
}

/// The message about a method that does not exist.
fn unknown(text: &str) -> String {
    let selections = Selection::ALL.map(Selection::name);
    let finishes = Finish::ALL.map(Finish::name);
    let mut names: Vec<&str> = selections.into_iter().chain(finishes).collect();
    names.retain(|name| *name != "auto");
    format!(
        "{text}: a method is delegates, alpha:N or whole, then /beta:N, /staged, /filter, \
         /unfiltered or one of /{}",
        names.join(", /")
    )
}

fn options(text: &str, k: usize) -> anyhow::Result<VectorOptions> {
    let mut options = VectorOptions::new(k);
    for part in text.split('/') {
        match part.split_once(':').unwrap_or((part, "")) {
            ("delegates", "") => {}
            ("whole", "") => options.strategy.subrange = Subrange::Whole,
            ("alpha", exponent) => {
                options.strategy.subrange = Subrange::Exponent(exponent.parse()?)
            }
            ("beta", delegates) => options.strategy.delegates = delegates.parse()?,
            ("staged", "") => options.strategy.construction = Construction::Staged,
            ("filter", "") => options.strategy.filter = Filter::On,
            ("unfiltered", "") => options.strategy.filter = Filter::Off,
            (name, "") => {
                // The first finish is `auto`, which here names a selection.
                let mut finishes = Finish::ALL.into_iter().skip(1);
                match finishes.find(|one| one.name() == name) {
                    Some(finish) => options.strategy.finish = finish,
                    None => {
                        let named = Selection::ALL.into_iter().find(|one| one.name() == name);
                        options.strategy.selection = named.with_context(|| unknown(text))?;
                    }
                }
            }
            _ => bail!(unknown(text)),
        }
    }
    Ok(options)
}
