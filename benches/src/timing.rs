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

/// The median of some samples.
#[derive(Clone, Copy, Debug)]
pub struct Median {
    pub ms: f64,
    /// Half of the interquartile range, divided by the median.
    pub spread: f64,
}

pub struct Times {
    pub median: Median,
    pub first_ms: f64,
    pub checked: usize,
}

/// An operation whose result is right, with the clock that times it.
pub struct Ready<'a> {
    pub first_ms: f64,
    pub checked: usize,
    run: Run<'a>,
}

enum Run<'a> {
    /// Kernels, by device time.
    Kernels(Client, Box<dyn FnMut() + Send + 'a>),
    /// Tensor operations, by device time where the device has a clock.
    Tensors(Device, Box<dyn FnMut() + Send + 'a>),
    /// Queued tensor operations, by the wall clock.
    Ahead(Device, Box<dyn FnMut() + 'a>),
}

impl<'a> Ready<'a> {
    /// Times the first call of kernels and checks the second.
    pub fn kernels<O>(
        client: &Client,
        run: impl Fn() -> anyhow::Result<O> + Send + 'a,
        check: impl FnOnce(O) -> anyhow::Result<usize>,
    ) -> anyhow::Result<Self> {
        let first_ms = wall_clock(|| {
            drop(run()?);
            Ok(future::block_on(client.sync())?)
        })?;
        let checked = check(run()?)?;
        let run = Box::new(move || drop(run().expect("it ran before")));
        Ok(Self { first_ms, checked, run: Run::Kernels(client.clone(), run) })
    }

    /// Times the first call of tensor operations and checks the second.
    pub fn tensors<O>(
        device: &Device,
        run: impl Fn() -> O + Send + 'a,
        check: impl FnOnce(O) -> anyhow::Result<usize>,
    ) -> anyhow::Result<Self> {
        let first_ms = wall_clock(|| {
            drop(run());
            Ok(device.sync()?)
        })?;
        let checked = check(run())?;
        let run = Box::new(move || drop(run()));
        Ok(Self { first_ms, checked, run: Run::Tensors(device.clone(), run) })
    }

    /// Operations that have been checked.
    pub fn ahead(device: &Device, first_ms: f64, checked: usize, run: impl FnMut() + 'a) -> Self {
        Self { first_ms, checked, run: Run::Ahead(device.clone(), Box::new(run)) }
    }

    pub fn measure(self) -> anyhow::Result<Times> {
        let median = match self.run {
            Run::Kernels(client, run) => measure(&client, run),
            Run::Tensors(device, run) => measure_tensors(&device, run),
            Run::Ahead(device, run) => measure_ahead(&device, run),
        };
        Ok(Times { median: median?, first_ms: self.first_ms, checked: self.checked })
    }

    /// Milliseconds of all of these runs, without a warm-up.
    pub fn sample(&mut self, runs: usize) -> anyhow::Result<f64> {
        let most = MAX_RUNS as usize;
        let chunks = (0..runs).step_by(most).map(|done| most.min(runs - done));
        let mut total = 0.0;
        for runs in chunks {
            total += match &mut self.run {
                Run::Kernels(client, run) => sample(client, runs, run)?,
                Run::Tensors(device, run) => sample_tensors(device, runs, run)?,
                Run::Ahead(device, run) => sample_waited(|| Ok(device.sync()?), runs, run)?,
            };
        }
        Ok(total)
    }
}

/// Loop steps of [`keep_busy`](fn@keep_busy) for each run, which take a fast GPU as long as ten
/// launches take the host.
const STEPS: u32 = 1 << 16;

#[cube(launch_unchecked)]
fn keep_busy(target: &mut [u32], steps: u32) {
    let mut state = steps;
    for _ in 0..steps {
        state = state * 1_664_525 + 1_013_904_223;
    }
    target[0] = state;
}

/// Median device time of one run of kernels.
pub fn measure(client: &Client, mut run: impl FnMut() + Send) -> anyhow::Result<Median> {
    warm_up(&mut run, || Ok(future::block_on(client.sync())?))?;
    let single = sample(client, 1, &mut run)?;
    let runs = (SAMPLE_MS / single).clamp(1.0, MAX_RUNS) as usize;
    sampled(|| Ok(sample(client, runs, &mut run)? / runs as f64))
}

/// Milliseconds of some runs of kernels. The device is kept busy until all are launched, so that no
/// run waits for the host.
fn sample(client: &Client, runs: usize, mut run: impl FnMut() + Send) -> anyhow::Result<f64> {
    let target = client.empty(size_of::<u32>());
    // SAFETY: the only unit writes the only element.
    unsafe {
        keep_busy::launch_unchecked(
            client,
            CubeCount::new_single(),
            CubeDim::new_single(),
            BufferArg::from_raw_parts(target, 1),
            STEPS * runs as u32,
        );
    }
    let ((), duration) = client
        .profile(|| (0..runs).for_each(|_| run()), "bench")
        .map_err(|error| anyhow::anyhow!("{error:?}"))?;
    milliseconds(duration)
}

/// Median wall-clock time of one of many queued runs of kernels, in milliseconds. It does not warm
/// up.
pub fn measure_launched(client: &Client, run: impl FnMut()) -> anyhow::Result<f64> {
    Ok(measure_waited(|| Ok(future::block_on(client.sync())?), run)?.ms)
}

/// Median time of one run of tensor operations: device time, or wall-clock time on devices without
/// a clock.
pub fn measure_tensors(device: &Device, mut run: impl FnMut() + Send) -> anyhow::Result<Median> {
    warm_up(&mut run, || Ok(device.sync()?))?;
    sampled(|| sample_tensors(device, 1, &mut run))
}

/// Milliseconds of some runs of tensor operations.
fn sample_tensors(
    device: &Device,
    runs: usize,
    mut run: impl FnMut() + Send,
) -> anyhow::Result<f64> {
    let options = ProfileOptions::default().flush();
    let ((), duration) = device.profile_with(options, || (0..runs).for_each(|_| run()))?;
    milliseconds(duration)
}

/// Median wall-clock time of one run. A sample waits once for all its runs, so that the host runs
/// ahead as in training.
pub fn measure_ahead(device: &Device, mut run: impl FnMut()) -> anyhow::Result<Median> {
    let wait = || Ok(device.sync()?);
    warm_up(&mut run, wait)?;
    measure_waited(wait, run)
}

fn measure_waited(
    wait: impl Fn() -> anyhow::Result<()>,
    mut run: impl FnMut(),
) -> anyhow::Result<Median> {
    let single = sample_waited(&wait, 1, &mut run)?;
    let runs = (QUEUED_SAMPLE_MS / single).clamp(1.0, MAX_RUNS) as usize;
    sampled(|| Ok(sample_waited(&wait, runs, &mut run)? / runs as f64))
}

/// Wall-clock milliseconds of some runs, until the device is idle.
fn sample_waited(
    wait: impl Fn() -> anyhow::Result<()>,
    runs: usize,
    mut run: impl FnMut(),
) -> anyhow::Result<f64> {
    wall_clock(|| {
        (0..runs).for_each(|_| run());
        wait()
    })
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

pub fn median(sample: impl FnMut() -> anyhow::Result<f64>) -> anyhow::Result<f64> {
    Ok(sampled(sample)?.ms)
}

fn sampled(mut sample: impl FnMut() -> anyhow::Result<f64>) -> anyhow::Result<Median> {
    let start = Instant::now();
    let mut samples = Vec::new();
    while samples.len() < SAMPLES && (samples.len() < MIN_SAMPLES || start.elapsed() < TIME_LIMIT) {
        samples.push(sample()?);
    }
    Ok(Median::of(samples))
}

impl Median {
    fn of(mut samples: Vec<f64>) -> Self {
        samples.sort_by(f64::total_cmp);
        let last = samples.len() - 1;
        let ms = samples[samples.len() / 2];
        let range = samples[last - last / 4] - samples[last / 4];
        Self { ms, spread: range / 2.0 / ms }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_is_half_of_the_middle_range() {
        let median = Median::of(vec![8.0, 100.0, 10.0, 12.0, 1.0]);
        assert_eq!((median.ms, median.spread), (10.0, 0.2));
        assert_eq!(Median::of(vec![3.0; 4]).spread, 0.0);
    }
}
