//! Graph layers and training.

pub mod devices;
pub mod layers;
pub mod subject;
pub mod training;

use sparsek_tests::{backend::Backend, runner::Cases};

pub fn add(cases: &mut Cases, backend: &Backend) {
    training::add(cases, backend);
    devices::add(cases, backend);
    layers::add(cases, backend);
}
