//! Layers without a graph.

pub mod layers;
pub mod subjects;

use sparsek_tests::{backend::Backend, runner::Cases};

pub fn add(cases: &mut Cases, backend: &Backend) {
    layers::add(cases, backend);
}
