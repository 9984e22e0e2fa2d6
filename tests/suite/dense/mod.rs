//! Dense layers.

pub mod common;
pub mod gemm;
pub mod layers;
pub mod within;

use sparsek_tests::{backend::Backend, runner::Cases};

pub fn add(cases: &mut Cases, backend: &Backend) {
    layers::add(cases, backend);
    gemm::add(cases, backend);
    within::add(cases, backend);
}
