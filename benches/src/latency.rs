//! Wall-clock time of one call of `topk` on tensors: alone, and queued.

use std::{collections::HashMap, path::PathBuf, time::Instant};

use anyhow::Context;
use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};
use sparsek::topk::{TopkOptions, topk};
use sparsek_tests::{
    backend::{Backend, Kind},
    data::Distribution,
};

use crate::{
    case::RowCase,
    record,
    topk::{Form, Output, Problem, check, seeded_rows},
};

/// Expert routers, sampling, sparse attention, and one bandwidth-bound case.
const CASES: [&str; 10] = [
    "1x32000x50",
    "8x128256x50",
    "64x151936x50",
    "4096x64x8",
    "16384x256x8",
    "1024x128x8",
    "16x4096x64",
    "4096x4096x32",
    "32x50257x1",
    "2**20x256x32",
];
const CHECKED_ROWS: usize = 1 << 12;
/// Warm-up calls, calls per queue, and samples of either kind, as in the script that times PyTorch.
const WARM_UPS: usize = 50;
const QUEUED: usize = 100;
const QUEUES: usize = 15;
const SINGLES: usize = 51;

/// Checks and times single calls of row-wise top-k on f32 tensors.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where to run.
    #[arg(long)]
    backend: Kind,
    /// Rows x columns x k; may be repeated.
    #[arg(long = "case", default_values = CASES)]
    cases: Vec<RowCase>,
    /// Times only the first call of each case.
    #[arg(long)]
    first: bool,
    /// PyTorch's times of the same cases on the same card, as JSON lines.
    #[arg(long, value_name = "FILE")]
    torch: Option<PathBuf>,
    /// Appends one JSON line for each case.
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(Serialize, Deserialize)]
pub struct LatencyRecord {
    pub bench: String,
    pub case: String,
    pub backend: String,
    pub device: String,
    /// The first call in the process, kernel compilation included.
    pub first_ms: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub single_us: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub piped_us: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub torch_single_us: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub torch_piped_us: Option<f64>,
    pub checked: usize,
}

#[derive(Deserialize)]
struct Peer {
    case: String,
    single_us: f64,
    piped_us: f64,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let peers = record::read_torch::<Peer>(arguments.torch.as_deref())?;
    let peers: HashMap<String, Peer> =
        peers.into_iter().map(|peer| (peer.case.clone(), peer)).collect();
    let backend = arguments.backend.open().map_err(anyhow::Error::msg)?;
    for case in &arguments.cases {
        let mut record = one(&backend, case, arguments.first).with_context(|| case.to_string())?;
        record.backend = arguments.backend.to_string();
        let name = format!("{}x{}x{}", case.rows, case.cols, case.k);
        let peer = peers.get(&name);
        record.torch_single_us = peer.map(|peer| peer.single_us);
        record.torch_piped_us = peer.map(|peer| peer.piped_us);
        say!("{}", line(&record));
        if let Some(path) = &arguments.json {
            record::append(path, &record)?;
        }
    }
    Ok(())
}

fn one(backend: &Backend, case: &RowCase, first_only: bool) -> anyhow::Result<LatencyRecord> {
    let device = &backend.device;
    let input = seeded_rows::<f32>(case.rows, case.cols, Distribution::Normal, 0);
    let problem = Problem::new(case, Form::Pairs, &input);
    let data = TensorData::new(input.clone(), [case.rows, case.cols]);
    let x = Tensor::<2>::from_data(data, device);
    let options = TopkOptions::new(case.k);
    device.sync()?;

    let start = Instant::now();
    let (values, indices) = topk(x.clone(), &options, -1);
    device.sync()?;
    let first_ms = start.elapsed().as_secs_f64() * 1e3;

    let values: Vec<f32> = values.into_data().iter::<f32>().collect();
    let indices: Vec<u32> = indices.into_data().iter::<u32>().collect();
    let checked = check(&problem, &Output::Pairs(&values, &indices), CHECKED_ROWS)?;
    let mut record = LatencyRecord {
        bench: "latency".into(),
        case: case.text.clone(),
        backend: String::new(),
        device: backend.label.clone(),
        first_ms,
        single_us: None,
        piped_us: None,
        torch_single_us: None,
        torch_piped_us: None,
        checked,
    };
    if !first_only {
        let run = || drop(topk(x.clone(), &options, -1));
        calls(device, WARM_UPS, run)?;
        record.piped_us = Some(median(QUEUES, || calls(device, QUEUED, run))?);
        record.single_us = Some(median(SINGLES, || calls(device, 1, run))?);
    }
    Ok(record)
}

/// Microseconds per call of `count` queued calls.
fn calls(device: &Device, count: usize, run: impl Fn()) -> anyhow::Result<f64> {
    let start = Instant::now();
    (0..count).for_each(|_| run());
    device.sync()?;
    Ok(start.elapsed().as_secs_f64() * 1e6 / count as f64)
}

fn median(count: usize, sample: impl Fn() -> anyhow::Result<f64>) -> anyhow::Result<f64> {
    let mut samples: Vec<f64> = (0..count).map(|_| sample()).collect::<Result<_, _>>()?;
    samples.sort_by(f64::total_cmp);
    Ok(samples[count / 2])
}

fn line(record: &LatencyRecord) -> String {
    let time = |us: Option<f64>| us.map_or("-".into(), |us| format!("{us:.1} µs"));
    format!(
        "{}: single {} (PyTorch {}), queued {} (PyTorch {}), first call {:.0} ms, {} rows checked",
        record.case,
        time(record.single_us),
        time(record.torch_single_us),
        time(record.piped_us),
        time(record.torch_piped_us),
        record.first_ms,
        record.checked,
    )
}
