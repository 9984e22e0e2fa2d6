//! Top-k of one vector.

pub mod finish;
pub mod parts;
pub mod selections;

use sparsek_tests::{backend::Backend, runner::Cases};

pub fn add(cases: &mut Cases, backend: &Backend) {
    selections::add(cases, backend);
    finish::add(cases, backend);
    parts::add(cases, backend);
}
