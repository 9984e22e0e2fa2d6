//! CSR matrices times dense and compressed rows.

pub mod compressed_rows;
pub mod dense_rows;
pub mod kernels;
pub mod problem;
pub mod shared;
pub mod two_pass;

use sparsek_tests::{backend::Backend, runner::Cases};

pub fn add(cases: &mut Cases, backend: &Backend) {
    dense_rows::add(cases, backend);
    compressed_rows::add(cases, backend);
    kernels::add(cases, backend);
    shared::add(cases, backend);
    two_pass::add(cases, backend);
}
