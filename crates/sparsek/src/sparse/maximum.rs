//! The greatest of the rows that a pattern names.

use burn::{backend::Dispatch, tensor::Tensor};

use super::{Adjacency, product::check};
use crate::ops::MaximumOps;

/// The greatest of the rows of a dense matrix that each row of a pattern names: `y[i] = max x[j]` over the entries `(i, j)` of
/// row `i`, element by element, the maximum aggregation of a graph network.
///
/// # Shapes
///
/// - `x`: `[cols, d]` of f32, f64, f16 or bf16.
/// - result: `[rows, d]` in the dtype of `x`. Rows without entries are 0.
///
/// # Guarantees
///
/// Deterministic. The first entry of equals wins. With NaN among the elements the result is not specified.
///
/// # Gradient
///
/// That of an element of the result goes to the element that won, all others get zero.
///
/// # Panics
///
/// As [`spmm`](super::spmm).
///
/// # Cost
///
/// One row of `x` is read for each entry; with a gradient 4 bytes are kept for each element of the result.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::sparse::{Adjacency, Pattern, spmm_max};
///
/// let device = Device::flex();
/// let pattern = Pattern::new(2, 3, vec![0, 1, 3], vec![1, 0, 2]).unwrap();
/// let x = Tensor::<2>::from_data([[1.0], [2.0], [4.0]], &device);
/// let y = spmm_max(&Adjacency::new(&pattern, &device), x);
/// y.into_data().assert_eq(&TensorData::from([[2.0], [4.0]]), false);
/// ```
pub fn spmm_max(adjacency: &Adjacency, x: Tensor<2>) -> Tensor<2> {
    check("spmm_max", adjacency, &x);
    let adjacency = adjacency.clone();
    Tensor::from_dispatch(<Dispatch as MaximumOps>::spmm_max(
        x.into_dispatch(),
        adjacency.indptr.into_dispatch(),
        adjacency.indices.into_dispatch(),
        adjacency.transposed_indptr.into_dispatch(),
        adjacency.transposed_indices.into_dispatch(),
        adjacency.transposed_entries.into_dispatch(),
    ))
}
