use burn::tensor::Tensor;

use super::{adjacency::Adjacency, pattern::Pattern, spmm::spmm, tensor::gather};

/// Gathers elements, repeated or not.
///
/// Gradients of [`gather`] race at repeated places, so autodiff uses a product. Ascending places do
/// not repeat.
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
