//! Top-k of a vector sharded over several devices, compared with one device.

use std::{path::PathBuf, time::Instant};

use anyhow::{Context, ensure};
use burn::tensor::{Device, Int, Tensor, TensorData, Transaction};
use serde::Serialize;
use sparsek::topk::{TopkOptions, topk, topk_sharded};
use sparsek_tests::{backend::Kind, data::Distribution};

use super::problem::{check, vector};
use crate::{case::VectorCase, record, timing::median};

/// Checks and times top-k of a vector of f32 on several devices.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where to run.
    #[arg(long, default_value = "cuda")]
    backend: Kind,
    /// Devices of the backend by number; the first receives the result. A repeated number holds
    /// several shards.
    #[arg(long, value_delimiter = ',', default_value = "0,1")]
    devices: Vec<usize>,
    /// Elements x k, for example 2**32x128; may be repeated.
    #[arg(long = "case", default_value = "2**28x128")]
    cases: Vec<VectorCase>,
    /// Appends one JSON line per case.
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(Serialize)]
struct Record {
    bench: &'static str,
    case: String,
    backend: String,
    device: String,
    dtype: &'static str,
    method: String,
    dist: &'static str,
    ms: f64,
    one_ms: f64,
    /// The longest selection from one shard alone, until its device is idle.
    local_ms: f64,
    /// `ms - local_ms`: starting the devices and gathering the lists.
    communication_ms: f64,
    checked: usize,
}

impl Arguments {
    /// The first two devices; without a record.
    pub fn two(backend: Kind) -> Self {
        Self { backend, devices: vec![0, 1], cases: Vec::new(), json: None }
    }
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    for case in &arguments.cases {
        measure(arguments, case).with_context(|| case.to_string())?;
    }
    Ok(())
}

/// One device's time divided by that of all.
pub fn measure(arguments: &Arguments, case: &VectorCase) -> anyhow::Result<f64> {
    let VectorCase { length, k, .. } = *case;
    let backend = arguments.backend.open().map_err(anyhow::Error::msg)?;
    let devices = numbered_devices(&backend.devices(), &arguments.devices)?;
    let first = devices.first().context("no devices")?;
    let input = vector::<f32>(length, Distribution::Uniform);
    let put = |part: &[f32], device: &Device| {
        Tensor::<1>::from_data(TensorData::new(part.to_vec(), [part.len()]), device)
    };
    let part = length.div_ceil(devices.len());
    let shards: Vec<Tensor<1>> =
        (input.chunks(part).zip(&devices)).map(|(part, device)| put(part, device)).collect();
    let options = TopkOptions::new(k);
    let sharded = || -> anyhow::Result<(Vec<f32>, Vec<i64>)> {
        let (values, indices) = topk_sharded(shards.clone(), &options)?;
        read(values, indices)
    };
    let (values, indices) = sharded()?;
    check::<f32>(&input, &values, &indices)?;
    let clock = |run: &mut dyn FnMut() -> anyhow::Result<()>| {
        median(|| {
            let start = Instant::now();
            run()?;
            Ok(start.elapsed().as_secs_f64() * 1e3)
        })
    };
    let ms = clock(&mut || sharded().map(drop))?;
    let mut local_ms = 0.0f64;
    for (shard, device) in shards.iter().zip(&devices) {
        let alone = clock(&mut || {
            let best = topk(shard.clone(), &options, 0);
            device.sync()?;
            drop(best);
            Ok(())
        })?;
        local_ms = local_ms.max(alone);
    }
    drop(shards);
    let whole = put(&input, first);
    // One shard, so that its indices have 64 bits too.
    let mut one = || {
        let (values, indices) = topk_sharded(vec![whole.clone()], &options)?;
        let (found, _) = read(values, indices)?;
        ensure!(found.len() == k, "{} selected elements", found.len());
        Ok(())
    };
    one()?;
    let one_ms = clock(&mut one)?;
    let record = Record {
        bench: "shards",
        case: case.text.clone(),
        backend: arguments.backend.to_string(),
        device: format!("{first:?}"),
        dtype: "f32",
        method: format!("{} devices", devices.len()),
        dist: "uniform",
        ms,
        one_ms,
        local_ms,
        communication_ms: ms - local_ms,
        checked: length,
    };
    say!(
        "{case} on {}: {ms:.3} ms, longest local selection {local_ms:.3} ms; one device \
         {one_ms:.3} ms ({:.2} x)",
        record.method,
        one_ms / ms
    );
    if let Some(path) = &arguments.json {
        record::append(path, &record)?;
    }
    Ok(one_ms / ms)
}

/// The devices of these numbers.
pub fn numbered_devices(present: &[Device], numbers: &[usize]) -> anyhow::Result<Vec<Device>> {
    let numbered = |&number: &usize| {
        let count = present.len();
        let device = present.get(number).cloned();
        device.with_context(|| format!("{count} device(s), numbered from 0: no {number}"))
    };
    numbers.iter().map(numbered).collect()
}

fn read(values: Tensor<1>, indices: Tensor<1, Int>) -> anyhow::Result<(Vec<f32>, Vec<i64>)> {
    let both = Transaction::default().register(values).register(indices);
    let both = both.try_execute()?;
    let [values, indices] = &both[..] else {
        anyhow::bail!("{} tensors instead of 2", both.len());
    };
    let error = |error| anyhow::anyhow!("{error:?}");
    let values = values.try_to_vec::<f32>().map_err(error)?;
    let indices = indices.clone().convert::<i64>();
    Ok((values, indices.try_to_vec::<i64>().map_err(error)?))
}
