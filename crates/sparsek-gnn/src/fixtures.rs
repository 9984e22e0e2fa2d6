use std::sync::{Mutex, MutexGuard, PoisonError};

use burn::tensor::Device;
use rstest::fixture;

#[fixture]
pub fn device() -> Device {
    Device::flex()
}

/// Seeded runs share one random stream per process.
static STREAM: Mutex<()> = Mutex::new(());

pub type Alone = MutexGuard<'static, ()>;

/// First argument of tests that draw.
#[fixture]
pub fn alone() -> Alone {
    STREAM.lock().unwrap_or_else(PoisonError::into_inner)
}
