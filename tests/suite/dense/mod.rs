//! Dense layers.

pub mod common;
pub mod filter;
pub mod gemm;
pub mod layers;
pub mod steps;

use sparsek_tests::{backend::Backend, runner::Cases};

pub fn add(cases: &mut Cases, backend: &Backend) {
    layers::add(cases, backend);
    gemm::add(cases, backend);
    filter::add(cases, backend);
    steps::add(cases, backend);
}
