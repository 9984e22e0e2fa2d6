//! Shards.

use burn::tensor::{Tensor, kind::Ordered};

/// Most lists merged at once.
pub(super) const MERGED: usize = 4;

/// Elements on one device, and the position of the first.
pub(super) struct Part<K: Ordered> {
    pub elements: Tensor<1, K>,
    pub first: i64,
}
