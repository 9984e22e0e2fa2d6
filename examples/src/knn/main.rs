//! Finds the nearest rows of a matrix by any metric, on any backend; see `--help`.
mod cli;
mod search;

use std::{
    error::Error,
    fs,
    io::{BufReader, Read},
    num::NonZeroUsize,
    path::Path,
    process::ExitCode,
    time::Instant,
};

use burn::tensor::{DType, Device, Tensor, TensorData};
use sparsek::{
    distance::{Metric, Samples, ShardedNeighbors},
    io::{input, npy::Npy},
    sparse::Csr,
};
use sparsek_examples::{
    backend::{self, Backend},
    npz,
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
    let backends = backend::open_each(args.backend, &args.devices)?;
    let setting = Setting { args, metric, target, backends: &backends };
    let dense = args.key.is_none() && is_dense(&args.data)?;
    match dense && args.query.as_deref().map_or(Ok(true), is_dense)? {
        true => setting.search(|file| dense_rows(file, &setting.load_device())),
        // Rows of two kinds are searched as sparse ones.
        false => setting.search(|file| setting.sparse_rows(file)),
    }
}

/// Whether a file holds an array of numpy's save.
fn is_dense(file: &Path) -> Result<bool, Box<dyn Error>> {
    let mut magic = [0; MAGIC.len()];
    let (mut file, _) = input::open(file).map_err(|error| named(file, error))?;
    // Shorter files are none, and refused by their reader.
    Ok(file.read_exact(&mut magic).is_ok() && magic == *MAGIC)
}

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// Dense rows as f32.
fn dense_rows(file: &Path, device: &Device) -> Result<Tensor<2>, Box<dyn Error>> {
    let read = || -> Result<_, String> {
        let (open, size) = input::open(file).map_err(|error| error.to_string())?;
        let array = Npy::open(BufReader::new(open), size)?;
        let &[rows, cols] = array.shape() else {
            return Err(format!("an array of {} dimensions instead of 2", array.shape().len()));
        };
        Ok(TensorData::new(array.into_f32()?, [rows, cols]))
    };
    let data = read().map_err(|reason| named(file, reason))?;
    Ok(Tensor::from_data(data, (device, DType::F32)))
}

struct Setting<'a> {
    args: &'a Cli,
    metric: Metric,
    target: Target,
    backends: &'a [Backend],
}

impl Setting<'_> {
    /// Files are read to the host if their rows are shared among devices.
    fn load_device(&self) -> Device {
        match self.backends {
            #[cfg(feature = "flex")]
            [_, _, ..] => Device::flex(),
            _ => self.backends[0].device.clone(),
        }
    }

    fn sparse_rows(&self, file: &Path) -> Result<Csr, Box<dyn Error>> {
        let device = self.load_device();
        Ok(match &self.args.key {
            Some(key) => Csr::from_hdf5(file, Some(key), (&device, DType::F32))?,
            None if is_dense(file)? => Csr::from_dense(dense_rows(file, &device)?)?,
            None => Csr::from_file(file, (&device, DType::F32))?,
        })
    }

    /// Checks the whole input before writing a file.
    fn search<S: Samples>(
        &self,
        load: impl Fn(&Path) -> Result<S, Box<dyn Error>>,
    ) -> Result<(), Box<dyn Error>> {
        let &Setting { args, metric, target, backends } = self;
        let index = load(&args.data)?;
        let query = args.query.as_deref().map(load).transpose()?;
        let rows = index.rows();
        let share = rows.div_ceil(backends.len());
        let shards = backends.iter().enumerate().map(|(at, backend)| {
            let [start, end] = [at, at + 1].map(|at| rows.min(at * share));
            index.slice_rows(start..end).copy_to(&backend.device)
        });
        let shards = match backends {
            [_] => vec![index],
            _ => shards.collect::<Result<Vec<S>, _>>()?,
        };
        let index = ShardedNeighbors::fit(shards, metric)?;
        let search = Search { index, query, target };
        search.check_memory()?;
        let output = npz::create(&args.output)?;
        let names: Vec<String> = backends.iter().map(ToString::to_string).collect();
        let names = names.join(", ");
        say!("{} rows among {rows} by {metric} on {names}", search.rows());
        let start = Instant::now();
        let found = run(&search, args.query_batch)
            .map_err(|error| named(args.query.as_ref().unwrap_or(&args.data), error))?;
        let memory = memory(&backends[0].device);
        let written = search.write(output, &found);
        let output = written.map_err(|error| named(&args.output, error))?;
        commit(&args.output, output)?;
        let seconds = start.elapsed().as_secs_f64();
        say!("{} written in {seconds:.2} s", args.output.display());
        say!("memory: {memory}");
        Ok(())
    }
}

fn run<S: Samples>(
    search: &Search<S>,
    batch: Option<NonZeroUsize>,
) -> Result<Neighbors, Box<dyn Error>> {
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
