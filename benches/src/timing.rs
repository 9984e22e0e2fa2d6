//! Times, as medians.

use std::time::Instant;

use anyhow::Context;
use burn::tensor::{Device, ProfileOptions};
use cubecl::{client::Client, future, profile::ProfileDuration};

/// Samples per measurement.
const SAMPLES: usize = 21;
/// Runs before the first sample.
const WARM_UPS: usize = 3;

/// Milliseconds of device time of one run of kernels, the median of many, after a warm-up.
pub fn measure(client: &Client, mut run: impl FnMut() + Send) -> anyhow::Result<f64> {
    for _ in 0..WARM_UPS {
        run();
    }
    future::block_on(client.sync())?;
    median(|| {
        let ((), duration) = client
            .profile(&mut run, "bench")
            .map_err(|error| anyhow::anyhow!("{error:?}"))?;
        milliseconds(duration)
    })
}

/// Milliseconds of one run of tensor operations, the median of many, after a warm-up: device time,
/// or on devices without a clock wall-clock time between two waits.
pub fn measure_tensors(device: &Device, mut run: impl FnMut() + Send) -> anyhow::Result<f64> {
    for _ in 0..WARM_UPS {
        run();
    }
    device.sync()?;
    median(|| {
        let options = ProfileOptions::default().flush();
        let ((), duration) = device.profile_with(options, &mut run)?;
        milliseconds(duration)
    })
}

/// The median of the samples.
pub fn median(mut sample: impl FnMut() -> anyhow::Result<f64>) -> anyhow::Result<f64> {
    let mut samples: Vec<f64> = (0..SAMPLES)
        .map(|_| sample())
        .collect::<anyhow::Result<_>>()?;
    samples.sort_by(f64::total_cmp);
    Ok(samples[SAMPLES / 2])
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
