//! Times, as medians.

use std::time::{Duration, Instant};

use anyhow::Context;
use burn::tensor::{Device, ProfileOptions};
use cubecl::{client::Client, future, prelude::*, profile::ProfileDuration};

/// Samples per measurement; fewer, but not fewer than so many, of what takes longer than so long.
const SAMPLES: usize = 21;
const FEWEST: usize = 3;
const LONG: Duration = Duration::from_secs(10);
/// Runs before the first sample, at least, and for how long, at least: an NVIDIA H200 that was idle takes 0.2 s to
/// raise its clocks under Vulkan, and copies at 0.4 of its rate until then.
const WARM_UPS: usize = 3;
const WARM_UP: Duration = Duration::from_millis(500);
/// Runs between two looks at the clock.
const BURST: usize = 8;
/// Milliseconds that the runs of a sample take together, about: what passes on the device between the clock and
/// a single kernel, 0.015 ms on an NVIDIA H200, shall not count.
const SAMPLE_MS: f64 = 4.0;
/// The same of what the host launches ahead.
const AHEAD_MS: f64 = 200.0;
/// Most runs in a sample.
const MOST_RUNS: f64 = 64.0;

/// What was measured.
pub struct Times {
    /// Milliseconds of one call, the median of many.
    pub ms: f64,
    /// Wall-clock milliseconds of the first call.
    pub first_ms: f64,
    /// Rows compared with the oracle.
    pub checked: usize,
}

/// Steps of a unit that keep the device busy while the host launches the runs of a sample: 4 ms on an NVIDIA H200.
const STEPS: u32 = 1 << 20;

#[cube(launch_unchecked)]
fn keep_busy(target: &mut [u32], steps: u32) {
    let mut state = steps;
    for _ in 0..steps {
        state = state * 1_664_525 + 1_013_904_223;
    }
    target[0] = state;
}

/// Milliseconds of device time of one run of kernels, the median of many, after a warm-up. The device is kept busy until all runs of a
/// sample are launched, so that it waits for the host between none of them: [`measure_launched`] tells what the host takes.
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
    let runs = (SAMPLE_MS / single).clamp(1.0, MOST_RUNS) as usize;
    median(|| sample(runs))
}

/// Milliseconds by the wall clock of one run of kernels that was just measured, where many follow one another: of the host, where it
/// takes longer to launch than the device to run.
pub fn measure_launched(client: &Client, run: impl FnMut()) -> anyhow::Result<f64> {
    measure_waited(|| Ok(future::block_on(client.sync())?), run)
}

/// Milliseconds of one run of tensor operations, the median of many, after a warm-up: device time,
/// or on devices without a clock wall-clock time between two waits.
pub fn measure_tensors(device: &Device, mut run: impl FnMut() + Send) -> anyhow::Result<f64> {
    warm_up(&mut run, || Ok(device.sync()?))?;
    median(|| {
        let options = ProfileOptions::default().flush();
        let ((), duration) = device.profile_with(options, &mut run)?;
        milliseconds(duration)
    })
}

/// Times the first call of tensor operations, checks the result of the second, times the others.
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

/// Milliseconds by the wall clock of one run, of work that may end after its call returns: the median of many, after a warm-up. The
/// runs of a sample are waited for together, so that the host can be ahead of the device as it is in use.
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
    let runs = (AHEAD_MS / single).clamp(1.0, MOST_RUNS) as usize;
    median(|| sample(runs))
}

/// Runs until the device's clocks are up.
fn warm_up(mut run: impl FnMut(), sync: impl Fn() -> anyhow::Result<()>) -> anyhow::Result<()> {
    let start = Instant::now();
    for runs in 1.. {
        run();
        if runs % BURST == 0 || start.elapsed() > WARM_UP {
            sync()?;
            // Once is enough of what takes as long.
            let enough = runs >= WARM_UPS || start.elapsed() > WARM_UP * runs as u32;
            if enough && start.elapsed() > WARM_UP {
                break;
            }
        }
    }
    Ok(())
}

/// The median of the samples.
pub fn median(mut sample: impl FnMut() -> anyhow::Result<f64>) -> anyhow::Result<f64> {
    let start = Instant::now();
    let mut samples = Vec::new();
    while samples.len() < SAMPLES && (samples.len() < FEWEST || start.elapsed() < LONG) {
        samples.push(sample()?);
    }
    samples.sort_by(f64::total_cmp);
    Ok(samples[samples.len() / 2])
}

/// Milliseconds of wall clock.
pub fn wall_clock(run: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let start = Instant::now();
    run()?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

fn milliseconds(duration: ProfileDuration) -> anyhow::Result<f64> {
    let ticks = future::block_on(duration.resolve()).context("no device time")?;
    Ok(ticks.duration().as_secs_f64() * 1e3)
}
