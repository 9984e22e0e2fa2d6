//! Elements taken more than once.

use burn::tensor::Tensor;

use super::{adjacency::Adjacency, pattern::Pattern, spmm::spmm, tensor::gather};

/// Elements of `x` at any places, repeated or not.
///
/// Gradients of [`gather`] race where places repeat, so under autodiff this is a product with a
/// matrix of one entry per row, whose gradient adds in order. Ascending places do not repeat.
pub(super) fn repeat(x: Tensor<1>, places: &[u32]) -> Tensor<1> {
    let device = x.device();
    if !device.is_autodiff() || places.is_sorted_by(|a, b| a < b) {
        return gather(x, places);
    }
    let [count] = x.dims();
    let indptr = (0..=places.len() as u32).collect();
    let pattern = Pattern::new(places.len(), count, indptr, places.to_vec());
    let adjacency = Adjacency::new(&pattern.expect("an entry per row"), &device);
    spmm(&adjacency, x.reshape([count, 1])).reshape([places.len()])
}
