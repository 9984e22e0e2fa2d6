//! Top-k of one vector: on one device, streamed through it, or sharded over several.

mod problem;
mod shards;
mod stream;

pub use shards::{
    Arguments as ShardArguments, measure as measure_shards, numbered_devices, run as run_shards,
};
pub use stream::{Arguments as StreamArguments, run as run_stream};

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use burn::tensor::{Tensor, TensorData};
use bytemuck::cast_slice;
use cubecl::{client::Client, ir::ElemType, prelude::*, server::Handle};
use sparsek::topk::{TopkOptions, topk};
use sparsek_kernels::{
    KernelError,
    topk::{
        Construction, Filter, Finish, Selected, Selection, Subrange, VectorOptions, WorkloadStats,
        topk_vector, topk_vector_stats,
    },
};
use sparsek_tests::{
    backend::{Backend, Kind},
    data::Distribution,
    element::{Dtype, Element},
    with_dtype,
};

pub use self::problem::{Data, PaperData};
use self::problem::{check, vector};
use crate::{
    case::VectorCase,
    copy,
    record::{self, VectorRecord},
    timing::{Median, Ready, Times, measure_launched},
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
    /// Distribution of the input, by the suite's names, or of u32: paper-uniform, paper-normal,
    /// paper-customized; may be repeated.
    #[arg(long = "dist", default_value = "uniform", value_parser = Data::parse)]
    dists: Vec<Data>,
    /// Type of the elements; may be repeated.
    #[arg(long = "dtype", value_enum, default_value = "f32")]
    dtypes: Vec<Dtype>,
    /// Appends one JSON line per case and method.
    #[arg(long)]
    json: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let backend = arguments.backend.open().map_err(anyhow::Error::msg)?;
    let Some(client) = &backend.client else {
        return run_tensors(arguments, &backend);
    };
    let elements = copy::elements(&backend);
    let copy_gbps = copy::rate(client, elements)?;
    let read_gbps = copy::read_rate(client, elements)?;
    say!(
        "{} ({}): copy {copy_gbps:.0} GB/s, read {read_gbps:.0} GB/s",
        arguments.backend,
        backend.label
    );
    let bench = Bench { client, arguments, device: backend.label.clone(), copy_gbps, read_gbps };
    for case in &arguments.cases {
        for &dist in &arguments.dists {
            for dtype in &arguments.dtypes {
                with_dtype!(dtype, T => bench.methods::<T>(case, dist)?);
            }
        }
    }
    Ok(())
}

/// Times the tensor operation, on a backend without kernels.
fn run_tensors(arguments: &Arguments, backend: &Backend) -> anyhow::Result<()> {
    let kind = arguments.backend;
    for method in &arguments.methods {
        ensure!(method == "delegates", "--method {method} names kernels; {kind} has none");
    }
    ensure!(arguments.dtypes == [Dtype::F32], "{kind} is timed with f32 only");
    let copy_gbps = copy::backend_rate(backend)?;
    say!("{kind} ({}): copy {copy_gbps:.0} GB/s", backend.label);
    for case in &arguments.cases {
        for &dist in &arguments.dists {
            let input = dist.vector::<f32>(case.length)?;
            let ready =
                tensors(backend, input, case.k).with_context(|| format!("{case}, {dist:?}"))?;
            let Times { median: Median { ms, spread }, first_ms, checked } = ready.measure()?;
            let floor_ms = (case.length * size_of::<f32>()) as f64 / copy_gbps / 1e6;
            let name = dist.name();
            say!("{case} f32 {name}: {ms:.4} ms, {:.2} x one read at the copy rate", ms / floor_ms);
            let record = VectorRecord {
                bench: "delegate".into(),
                case: case.text.clone(),
                backend: kind.to_string(),
                device: backend.label.clone(),
                dtype: "f32".into(),
                method: "delegates".into(),
                dist: name,
                ms,
                spread: Some(spread),
                launched_ms: None,
                first_ms,
                floor_ms,
                read_gbps: copy_gbps,
                copy_gbps,
                checked,
                delegates: 0,
                concatenated: 0,
            };
            if let Some(path) = &arguments.json {
                record::append(path, &record)?;
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
    fn methods<T: Element>(&self, case: &VectorCase, dist: Data) -> anyhow::Result<()> {
        let VectorCase { length, k, .. } = *case;
        let input = dist.vector::<T>(length)?;
        let held = HeldVector::new(self.client, &input);
        for text in &self.arguments.methods {
            let context = || format!("{case}, {text}, {dist:?}, {}", T::NAME);
            let Measured { times, stats, options } = match held.measure(text, k) {
                Err(error) if is_refused(&error) => {
                    say!("{case} {} {text} {}: left out, {error}", T::NAME, dist.name());
                    continue;
                }
                measured => measured.with_context(context)?,
            };
            let Times { median: Median { ms, spread }, first_ms, checked } = times;
            let vector = held.vector(options);
            let run = || drop(vector.launch(self.client).expect("it ran before"));
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
                spread: Some(spread),
                launched_ms: Some(launched_ms),
                first_ms,
                floor_ms: (length * size_of::<T>()) as f64 / self.read_gbps / 1e6,
                read_gbps: self.read_gbps,
                copy_gbps: self.copy_gbps,
                checked,
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

/// A vector on the device, with its host copy.
pub struct HeldVector<'a, T> {
    client: &'a Client,
    input: &'a [T],
    handle: Handle,
}

/// Times of one method, and what it read.
pub struct Measured {
    pub times: Times,
    pub stats: WorkloadStats,
    options: VectorOptions,
}

impl<'a, T: Element> HeldVector<'a, T> {
    pub fn new(client: &'a Client, input: &'a [T]) -> Self {
        Self { client, input, handle: client.create_from_slice(cast_slice(input)) }
    }

    fn vector(&self, options: VectorOptions) -> Vector {
        let (handle, length) = (self.handle.clone(), self.input.len());
        Vector { handle, dtype: T::elem_type(), length, options }
    }

    /// Checks and times a method by name.
    pub fn measure(&self, method: &str, k: usize) -> anyhow::Result<Measured> {
        let options = options(method, k)?;
        let ready = self.vector(options).ready(self.client, self.input)?;
        let (index, length) = (i64::elem_type_native(), self.input.len());
        let (_, stats) =
            topk_vector_stats(self.client, &self.handle, T::elem_type(), length, &options, index)?;
        Ok(Measured { times: ready.measure()?, stats, options })
    }
}

#[derive(Clone)]
struct Vector {
    handle: Handle,
    dtype: ElemType,
    length: usize,
    options: VectorOptions,
}

impl Vector {
    fn launch(&self, client: &Client) -> Result<Selected, KernelError> {
        let index = i64::elem_type_native();
        let (handle, options) = (&self.handle, &self.options);
        topk_vector(client, handle, self.dtype, self.length, options, index)
    }

    /// Checks a selection from `input`, which is on the device.
    fn ready<T: Element>(&self, client: &Client, input: &[T]) -> anyhow::Result<Ready<'static>> {
        let k = self.options.k;
        let (vector, owned) = (self.clone(), client.clone());
        let run = move || Ok(vector.launch(&owned)?);
        Ready::kernels(client, run, |selected| {
            let values = client.read_one(selected.values)?;
            let indices = i64::from_bytes(&client.read_one(selected.indices)?).to_vec();
            check::<T>(input, &cast_slice(&values)[..k], &indices[..k])?;
            Ok(input.len())
        })
    }
}

/// Selects from uniform f32 and checks it: by the kernels, or by the tensor operation on backends
/// without kernels.
pub fn ready(backend: &Backend, case: &VectorCase) -> anyhow::Result<Ready<'static>> {
    let VectorCase { length, k, .. } = *case;
    let input = vector::<f32>(length, Distribution::Uniform);
    let Some(client) = &backend.client else {
        return tensors(backend, input, k);
    };
    let vector = Vector {
        handle: client.create_from_slice(cast_slice(&input)),
        dtype: f32::elem_type_native(),
        length,
        options: VectorOptions::new(k),
    };
    vector.ready(client, &input)
}

/// Selects from `input` by the tensor operation and checks it.
fn tensors(backend: &Backend, input: Vec<f32>, k: usize) -> anyhow::Result<Ready<'static>> {
    let data = TensorData::new(input.clone(), [input.len()]);
    let x = Tensor::<1>::from_data(data, &backend.device);
    let options = TopkOptions::new(k);
    let run = move || topk(x.clone(), &options, 0);
    Ready::tensors(&backend.device, run, |(values, indices)| {
        let values: Vec<f32> = values.into_data().iter().collect();
        let indices: Vec<i64> = indices.into_data().iter().collect();
        check(&input, &values, &indices)?;
        Ok(input.len())
    })
}

/// Whether the plan refused the method, for example because it has fewer subranges than k.
pub fn is_refused(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref();
    matches!(error, Some(KernelError::Routine { .. } | KernelError::KTooLarge { .. }))
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
