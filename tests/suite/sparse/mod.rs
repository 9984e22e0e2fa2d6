//! CSR matrices.

pub mod csr;
pub mod files;
pub mod gradients;

use sparsek_tests::{backend::Backend, runner::Cases};

pub fn add(cases: &mut Cases, backend: &Backend) {
    csr::add(cases, backend);
    files::add(cases, backend);
    gradients::add(cases, backend);
}
