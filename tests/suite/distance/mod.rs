//! Distances and nearest neighbors.

pub mod common;
pub mod dense;
pub mod edges;
pub mod filter;
pub mod gradients;
pub mod graphs;
pub mod listed;
pub mod magnitudes;
pub mod metrics;
pub mod neighbors;
pub mod precomputed;
pub mod predict;
pub mod sharded;
pub mod tensor_core;
pub mod weighted;
pub mod wide;

use sparsek_tests::{backend::Backend, runner::Cases};

pub fn add(cases: &mut Cases, backend: &Backend) {
    metrics::add(cases, backend);
    edges::add(cases, backend);
    magnitudes::add(cases, backend);
    wide::add(cases, backend);
    gradients::add(cases, backend);
    tensor_core::add(cases, backend);
    neighbors::add(cases, backend);
    dense::add(cases, backend);
    listed::add(cases, backend);
    graphs::add(cases, backend);
    filter::add(cases, backend);
    precomputed::add(cases, backend);
    predict::add(cases, backend);
    sharded::add(cases, backend);
    weighted::add(cases, backend);
}
