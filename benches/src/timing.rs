//! Device time, as medians.

use std::time::Instant;

use cubecl::{client::Client, future};

/// Samples per measurement.
const SAMPLES: usize = 21;

/// Milliseconds of device time of one run, the median of many, after a warm-up.
pub fn measure(client: &Client, mut run: impl FnMut() + Send) -> anyhow::Result<f64> {
    for _ in 0..3 {
        run();
    }
    future::block_on(client.sync())?;
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        let ((), duration) = client
            .profile(&mut run, "bench")
            .map_err(|error| anyhow::anyhow!("{error:?}"))?;
        let ticks = future::block_on(duration.resolve())
            .ok_or_else(|| anyhow::anyhow!("no device time"))?;
        samples.push(ticks.duration().as_secs_f64() * 1e3);
    }
    samples.sort_by(f64::total_cmp);
    Ok(samples[SAMPLES / 2])
}

/// Milliseconds of wall clock of one run, until the device has ended it.
pub fn wall_clock(client: &Client, run: impl FnOnce()) -> anyhow::Result<f64> {
    let start = Instant::now();
    run();
    future::block_on(client.sync())?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}
