//! CSR matrices.

pub mod csr;
pub mod files;
pub mod gradients;
pub mod hdf5;
pub mod prepare;
pub mod stack;

use sparsek_tests::{backend::Backend, runner::Cases};

pub fn add(cases: &mut Cases, backend: &Backend) {
    csr::add(cases, backend);
    files::add(cases, backend);
    gradients::add(cases, backend);
    hdf5::add(cases, backend);
    prepare::add(cases, backend);
    stack::add(cases, backend);
}
