//! Fixtures that several modules share.

use std::sync::{Mutex, MutexGuard, PoisonError};

use burn::tensor::Device;
use rstest::fixture;

/// The backend of the unit tests.
#[fixture]
pub fn device() -> Device {
    Device::flex()
}

/// One random stream per process: seeded runs must not overlap with anything that draws.
static STREAM: Mutex<()> = Mutex::new(());

pub type Alone = MutexGuard<'static, ()>;

/// The first argument of every test that draws, dropout and initial weights included: later
/// arguments may draw too.
#[fixture]
pub fn alone() -> Alone {
    STREAM.lock().unwrap_or_else(PoisonError::into_inner)
}
