//! Row-wise top-k: kernels and tensors.

pub mod classics;
pub mod common;
pub mod extension;
pub mod gradients;
pub mod kernels;
pub mod masks;
pub mod ordered;
pub mod ragged;
pub mod ragged_tensors;
pub mod sharded;
pub mod stream;
pub mod tensors;
pub mod ties;
pub mod vector;

use sparsek_tests::{backend::Backend, runner::Cases};

pub fn add(cases: &mut Cases, backend: &Backend) {
    kernels::add(cases, backend);
    ragged::add(cases, backend);
    tensors::add(cases, backend);
    ragged_tensors::add(cases, backend);
    sharded::add(cases, backend);
    stream::add(cases, backend);
    gradients::add(cases, backend);
    extension::add(cases, backend);
    masks::add(cases, backend);
    ordered::add(cases, backend);
    ties::add(cases, backend);
    vector::add(cases, backend);
}
