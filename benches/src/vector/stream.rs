//! Top-k of a vector that the host streams to the device, compared with the copy rate.

use std::{path::PathBuf, time::Instant};

use anyhow::{Context, ensure};
use bytemuck::cast_slice;
use cubecl::{bytes::Bytes, client::Client, future, prelude::*};
use rayon::prelude::*;
use serde::Serialize;
use sparsek_kernels::topk::{Best, TopkStream, VectorOptions};
use sparsek_tests::{backend::Kind, data::Distribution};

use super::problem::{check, vector};
use crate::{case::VectorCase, record, timing::median};

/// Size of a measured copy in bytes, and number of copies in flight.
const COPIED: usize = 64 << 20;
const COPIES: usize = 32;

/// Checks and times top-k of a vector of f32 that comes in parts.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where to run.
    #[arg(long)]
    backend: Kind,
    /// Elements x k, for example 2**33x128; may be repeated.
    #[arg(long = "case", default_value = "2**28x128")]
    cases: Vec<VectorCase>,
    /// Elements held in host memory; they are streamed repeatedly up to the length of the vector.
    #[arg(long, default_value_t = 1 << 30)]
    held: usize,
    /// Fills pinned buffers before the clock starts.
    #[arg(long)]
    pinned: bool,
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
    method: &'static str,
    dist: &'static str,
    ms: f64,
    /// One copy from pinned memory.
    floor_ms: f64,
    copy_gbps: f64,
    checked: usize,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let backend = arguments.backend.open().map_err(anyhow::Error::msg)?;
    let client = (backend.client.as_ref())
        .context("flex computes in host memory: there is nothing to stream to")?;
    let copy_gbps = copy_rate(client)?;
    let bench = Bench { arguments, client, device: &backend.label, copy_gbps };
    for case in &arguments.cases {
        bench.measure(case).with_context(|| case.to_string())?;
    }
    Ok(())
}

struct Bench<'a> {
    arguments: &'a Arguments,
    client: &'a Client,
    device: &'a str,
    copy_gbps: f64,
}

impl Bench<'_> {
    fn measure(&self, case: &VectorCase) -> anyhow::Result<()> {
        let Self { arguments, client, device, copy_gbps } = *self;
        let VectorCase { length, k, .. } = *case;
        let held = vector::<f32>(arguments.held.min(length), Distribution::Uniform);
        ensure!(
            length.is_multiple_of(held.len()),
            "{length} elements are not a multiple of the {} held",
            held.len()
        );
        let rounds = length / held.len();
        let stream = || -> anyhow::Result<_> {
            let options = VectorOptions::new(k);
            let mut stream = TopkStream::new(client, f32::elem_type_native(), options);
            for _ in 0..rounds {
                stream.push(cast_slice(&held))?;
            }
            Ok(stream.finish()?)
        };
        let best = stream()?;
        let values: &[f32] = cast_slice(&best.values);
        let first: Vec<(i64, f32)> =
            (best.indices.iter().zip(values)).map(|(&at, &value)| (at as i64, value)).collect();
        if rounds == 1 {
            let indices: Vec<i64> = first.iter().map(|&(at, _)| at).collect();
            check::<f32>(&held, values, &indices)?;
        } else {
            ensure!(by_sorting(&held, rounds, k) == first, "the result differs from sorting");
        }
        let ms = median(|| {
            if arguments.pinned {
                let (found, ms) = pinned(client, &held, rounds, k)?;
                ensure!(found == best, "the result from pinned memory differs");
                return Ok(ms);
            }
            let start = Instant::now();
            stream()?;
            Ok(start.elapsed().as_secs_f64() * 1e3)
        })?;
        let record = Record {
            bench: "stream",
            case: case.text.clone(),
            backend: arguments.backend.to_string(),
            device: device.into(),
            dtype: "f32",
            method: if arguments.pinned { "pinned" } else { "parts" },
            dist: "uniform",
            ms,
            floor_ms: (length * 4) as f64 / copy_gbps / 1e6,
            copy_gbps,
            checked: length,
        };
        say!(
            "{case}: {ms:.1} ms, {:.2} of the copy rate from pinned memory ({copy_gbps:.1} GB/s)",
            record.floor_ms / ms
        );
        if let Some(path) = &arguments.json {
            record::append(path, &record)?;
        }
        Ok(())
    }
}

/// The selected elements, and the milliseconds once all pinned buffers are filled.
fn pinned(client: &Client, held: &[f32], rounds: usize, k: usize) -> anyhow::Result<(Best, f64)> {
    let mut stream = TopkStream::new(client, f32::elem_type_native(), VectorOptions::new(k));
    let buffers: Vec<Bytes> = (0..rounds)
        .flat_map(|_| held.chunks(COPIED / size_of::<f32>()))
        .map(|part| {
            let part: &[u8] = cast_slice(part);
            let mut buffer = stream.buffer(part.len());
            let share = part.len().div_ceil(rayon::current_num_threads());
            (buffer.par_chunks_mut(share))
                .zip(part.par_chunks(share))
                .for_each(|(to, from)| to.copy_from_slice(from));
            buffer
        })
        .collect();
    let start = Instant::now();
    for buffer in buffers {
        stream.push_buffer(buffer)?;
    }
    let best = stream.finish()?;
    Ok((best, start.elapsed().as_secs_f64() * 1e3))
}

/// The selection from `rounds` repetitions, by sorting. The k best of one round suffice: each value
/// occurs once per round.
fn by_sorting(held: &[f32], rounds: usize, k: usize) -> Vec<(i64, f32)> {
    let mut order: Vec<usize> = (0..held.len()).collect();
    let better = |a: &usize, b: &usize| held[*b].total_cmp(&held[*a]).then(a.cmp(b));
    if k < order.len() {
        order.select_nth_unstable_by(k, better);
        order.truncate(k);
    }
    let mut all: Vec<(i64, f32)> = (0..rounds)
        .flat_map(|round| {
            let shift = round * held.len();
            order.iter().map(move |&at| ((shift + at) as i64, held[at]))
        })
        .collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    all.truncate(k);
    all.sort_by_key(|&(index, _)| index);
    all
}

/// GB/s from pinned host memory to the device, the median of several rounds of copies.
fn copy_rate(client: &Client) -> anyhow::Result<f64> {
    let seconds = median(|| {
        let mut staged: Vec<Bytes> =
            (0..COPIES).map(|_| Bytes::from_bytes_vec(vec![1u8; COPIED])).collect();
        client.staging(staged.iter_mut(), false);
        future::block_on(client.sync())?;
        let start = Instant::now();
        let handles: Vec<_> = staged.into_iter().map(|bytes| client.create(bytes)).collect();
        future::block_on(client.sync())?;
        let seconds = start.elapsed().as_secs_f64();
        drop(handles);
        Ok(seconds)
    })?;
    Ok((COPIES * COPIED) as f64 / seconds / 1e9)
}
