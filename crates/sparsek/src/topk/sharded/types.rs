use burn::tensor::{Tensor, kind::Ordered};

/// Most lists merged at once.
pub(super) const MERGED: usize = 4;

/// `first`: position of the first element.
pub(super) struct Part<K: Ordered> {
    pub elements: Tensor<1, K>,
    pub first: i64,
}
