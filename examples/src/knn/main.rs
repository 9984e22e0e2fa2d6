//! Finds the nearest rows of a matrix by any metric, on any backend; see `--help`.
mod cli;
mod needs;
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
    distance::{AnySamples, Metric, ShardedNeighbors},
    io::{input, npy::Npy},
    sparse::{Csr, CsrError},
};
use sparsek_examples::{
    backend::{self, Backend},
    npz,
    program::{self, bar, check_paths, commit, named},
    say,
};

use crate::{
    cli::Cli,
    needs::{Input, Needs, Plan},
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
    Setting { args, metric, target, backends: &backends }.search()
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
fn dense_rows(file: &Path, device: &Device) -> Result<Input, Box<dyn Error>> {
    let read = || -> Result<_, String> {
        let (open, size) = input::open(file).map_err(|error| error.to_string())?;
        let array = Npy::open(BufReader::new(open), size)?;
        let &[rows, cols] = array.shape() else {
            return Err(format!("an array of {} dimensions instead of 2", array.shape().len()));
        };
        Ok((array.into_f32()?, [rows, cols]))
    };
    let (values, shape) = read().map_err(|reason| named(file, reason))?;
    let entries = values.iter().filter(|&&value| value != 0.0).count();
    let data = TensorData::new(values, shape);
    let rows = Tensor::<2>::from_data(data, (device, DType::F32));
    Ok(Input { rows: rows.into(), entries })
}

struct Setting<'a> {
    args: &'a Cli,
    metric: Metric,
    target: Target,
    backends: &'a [Backend],
}

impl Setting<'_> {
    /// Files are read to the host.
    #[cfg(feature = "flex")]
    fn load_device(&self) -> Device {
        Device::flex()
    }

    /// Without Flex, files are read to the first device.
    #[cfg(not(feature = "flex"))]
    fn load_device(&self) -> Device {
        self.backends[0].device.clone()
    }

    fn read(&self, file: &Path) -> Result<Input, Box<dyn Error>> {
        let device = self.load_device();
        let csr = match &self.args.key {
            Some(key) => Csr::from_hdf5(file, Some(key), (&device, DType::F32))?,
            None if is_dense(file)? => return dense_rows(file, &device),
            None => Csr::from_file(file, (&device, DType::F32))?,
        };
        Ok(Input { entries: csr.nnz(), rows: csr.into() })
    }

    /// A share of the rows for each device.
    fn shards(&self, rows: AnySamples) -> Result<Vec<AnySamples>, CsrError> {
        if let [backend] = self.backends {
            return Ok(vec![rows.copy_to(&backend.device)?]);
        }
        let count = rows.rows();
        let share = count.div_ceil(self.backends.len());
        let shards = self.backends.iter().enumerate().map(|(at, backend)| {
            let [start, end] = [at, at + 1].map(|at| count.min(at * share));
            rows.slice_rows(start..end).copy_to(&backend.device)
        });
        shards.collect()
    }

    /// `free`: bytes that the fullest device had left before files were read.
    fn needs(
        &self,
        (index, query): (&Input, Option<&Input>),
        batch: usize,
        free: Option<u64>,
    ) -> Needs {
        let on = |device: &Device| self.backends.iter().filter(|b| b.device == *device).count();
        let most = self.backends.iter().map(|backend| on(&backend.device)).max();
        Needs::of(&Plan {
            index,
            query,
            metric: self.metric,
            target: self.target,
            batch,
            shards: [self.backends.len(), most.unwrap_or(1)],
            on_device: self.backends.iter().all(Backend::has_own_memory),
            free,
        })
    }

    /// Checks the whole input and the memory before writing a file.
    fn search(&self) -> Result<(), Box<dyn Error>> {
        let &Setting { args, metric, target, backends } = self;
        let free = backends.iter().filter_map(Backend::free_memory).min();
        let index = self.read(&args.data)?;
        let query = args.query.as_deref().map(|file| self.read(file)).transpose()?;
        let rows = index.rows.rows();
        let queries = query.as_ref().unwrap_or(&index).rows.rows();
        let batch = search::batch(queries, rows, args.query_batch.map(NonZeroUsize::get));
        let needs = self.needs((&index, query.as_ref()), batch, free);
        needs.check()?;
        let output = npz::create(&args.output)?;
        say!("{needs}");
        let index = ShardedNeighbors::fit(self.shards(index.rows)?, metric)?;
        let search = Search { index, query: query.map(|query| query.rows), target };
        let names: Vec<String> = backends.iter().map(ToString::to_string).collect();
        let names = names.join(", ");
        say!("{} rows among {rows} by {metric} on {names}", search.rows());
        let start = Instant::now();
        let found = run(&search, batch)
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

fn run(search: &Search, batch: usize) -> Result<Neighbors, Box<dyn Error>> {
    let batches = search.batches(batch);
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
