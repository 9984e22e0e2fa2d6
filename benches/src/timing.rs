//! Median times.

use std::time::{Duration, Instant};

use anyhow::Context;
use burn::tensor::{Device, ProfileOptions};
use cubecl::{client::Client, future, prelude::*, profile::ProfileDuration};

/// Samples per measurement. Sampling stops at [`TIME_LIMIT`] once there are [`MIN_SAMPLES`].
const SAMPLES: usize = 21;
const MIN_SAMPLES: usize = 3;
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// Minimum number and duration of warm-up runs, in which an idle device raises its clocks.
const WARM_UPS: usize = 3;
const WARM_UP: Duration = Duration::from_millis(500);
/// Warm-up runs between two looks at the clock.
const BURST: usize = 8;
/// Target duration of a sample, so that the delay between the clock and a kernel does not count.
const SAMPLE_MS: f64 = 4.0;
/// Target duration of a sample by the wall clock.
const QUEUED_SAMPLE_MS: f64 = 200.0;
const MAX_RUNS: f64 = 64.0;

pub struct Times {
    pub ms: f64,
    pub first_ms: f64,
    pub checked: usize,
}

/// Loop steps of [`keep_busy`](fn@keep_busy): milliseconds on a fast GPU.
const STEPS: u32 = 1 << 20;

#[cube(launch_unchecked)]
fn keep_busy(target: &mut [u32], steps: u32) {
    let mut state = steps;
    for _ in 0..steps {
        state = state * 1_664_525 + 1_013_904_223;
    }
    target[0] = state;
}

/// Median device time of one run of kernels, in milliseconds. The device is kept busy until all
/// runs of a sample are launched, so that no run waits for the host.
pub fn measure(client: &Client, mut run: impl FnMut() + Send) -> anyhow::Result<f64> {
    warm_up(&mut run, || Ok(future::block_on(client.sync())?))?;
    let target = client.empty(size_of::<u32>());
    let mut sample = |runs: usize| {
        // SAFETY: the only unit writes the only element.
        unsafe {
            keep_busy::launch_unchecked(
                client,
                CubeCount::new_single(),
                CubeDim::new_single(),
                BufferArg::from_raw_parts(target.clone(), 1),
                STEPS,
            );
        }
        let ((), duration) = client
            .profile(|| (0..runs).for_each(|_| run()), "bench")
            .map_err(|error| anyhow::anyhow!("{error:?}"))?;
        Ok(milliseconds(duration)? / runs as f64)
    };
    let single: f64 = sample(1)?;
    let runs = (SAMPLE_MS / single).clamp(1.0, MAX_RUNS) as usize;
    median(|| sample(runs))
}

/// Median wall-clock time of one of many queued runs of kernels, in milliseconds. It does not warm
/// up.
pub fn measure_launched(client: &Client, run: impl FnMut()) -> anyhow::Result<f64> {
    measure_waited(|| Ok(future::block_on(client.sync())?), run)
}

/// Median time of one run of tensor operations, in milliseconds: device time, or wall-clock time on
/// devices without a clock.
pub fn measure_tensors(device: &Device, mut run: impl FnMut() + Send) -> anyhow::Result<f64> {
    warm_up(&mut run, || Ok(device.sync()?))?;
    median(|| {
        let options = ProfileOptions::default().flush();
        let ((), duration) = device.profile_with(options, &mut run)?;
        milliseconds(duration)
    })
}

/// Times the first call of tensor operations, checks the second, and times the others.
pub fn time_tensors<O>(
    device: &Device,
    run: impl Fn() -> O + Send + Sync,
    check: impl FnOnce(O) -> anyhow::Result<usize>,
) -> anyhow::Result<Times> {
    let first_ms = wall_clock(|| {
        drop(run());
        Ok(device.sync()?)
    })?;
    let checked = check(run())?;
    Ok(Times {
        ms: measure_tensors(device, || drop(run()))?,
        first_ms,
        checked,
    })
}

/// Median wall-clock time of one run, in milliseconds. A sample waits once for all its runs, so
/// that the host runs ahead as in training.
pub fn measure_ahead(device: &Device, mut run: impl FnMut()) -> anyhow::Result<f64> {
    let wait = || Ok(device.sync()?);
    warm_up(&mut run, wait)?;
    measure_waited(wait, run)
}

fn measure_waited(
    wait: impl Fn() -> anyhow::Result<()>,
    mut run: impl FnMut(),
) -> anyhow::Result<f64> {
    let mut sample = |runs: usize| {
        let ms = wall_clock(|| {
            (0..runs).for_each(|_| run());
            wait()
        })?;
        Ok(ms / runs as f64)
    };
    let single: f64 = sample(1)?;
    let runs = (QUEUED_SAMPLE_MS / single).clamp(1.0, MAX_RUNS) as usize;
    median(|| sample(runs))
}

/// Runs until the device's clocks are up.
fn warm_up(mut run: impl FnMut(), sync: impl Fn() -> anyhow::Result<()>) -> anyhow::Result<()> {
    let start = Instant::now();
    for runs in 1.. {
        run();
        if runs % BURST == 0 || start.elapsed() > WARM_UP {
            sync()?;
            // Long runs need fewer repetitions.
            let enough = runs >= WARM_UPS || start.elapsed() > WARM_UP * runs as u32;
            if enough && start.elapsed() > WARM_UP {
                break;
            }
        }
    }
    Ok(())
}

pub fn median(mut sample: impl FnMut() -> anyhow::Result<f64>) -> anyhow::Result<f64> {
    let start = Instant::now();
    let mut samples = Vec::new();
    while samples.len() < SAMPLES && (samples.len() < MIN_SAMPLES || start.elapsed() < TIME_LIMIT) {
        samples.push(sample()?);
    }
    samples.sort_by(f64::total_cmp);
    Ok(samples[samples.len() / 2])
}

pub fn wall_clock(run: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let start = Instant::now();
    run()?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

fn milliseconds(duration: ProfileDuration) -> anyhow::Result<f64> {
    let ticks = future::block_on(duration.resolve()).context("no device time")?;
    Ok(ticks.duration().as_secs_f64() * 1e3)
}
