//! Fixtures that several modules share.

use burn::tensor::Device;
use rstest::fixture;

/// The backend of the unit tests.
#[fixture]
pub fn device() -> Device {
    Device::flex()
}
