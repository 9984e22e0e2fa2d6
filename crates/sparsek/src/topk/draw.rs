//! Draws from sorted candidates.

use burn::{
    backend::Dispatch,
    tensor::{DType, Int, Tensor, TensorData},
};

use crate::ops::TopkOps;

/// Draws a token of each row: candidates `[rows, k]`, the greatest first → `[rows]`. Settings
/// `[rows, 6]` as in `sparsek_kernels::topk::Draw`.
pub(crate) fn draw(
    candidates: Tensor<2>,
    tokens: Tensor<2, Int>,
    settings: TensorData,
) -> Tensor<1, Int> {
    let settings = Tensor::<2>::from_data(settings, (&candidates.device(), DType::F32));
    Tensor::from_dispatch(<Dispatch as TopkOps>::draw(
        candidates.into_dispatch(),
        tokens.into_dispatch(),
        settings.into_dispatch(),
    ))
}
