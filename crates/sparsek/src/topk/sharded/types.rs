//! Shards and selections.

use burn::{
    backend::Dispatch,
    tensor::{Int, IntDType, Tensor, kind::Ordered},
};
use sparsek_kernels::topk::TopkOptions;

use super::super::rows::select;
use crate::ops::{Lengths, TopkSpec};

/// Most lists merged at once.
pub(super) const MERGED: usize = 4;

/// Elements on one device, and the position of the first.
pub(super) struct Part<K: Ordered> {
    pub elements: Tensor<1, K>,
    pub first: i64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub k: usize,
    pub largest: bool,
    pub sorted: bool,
    pub index: IntDType,
}

/// Selected elements and their positions, by index or value.
pub(super) struct Selected<K: Ordered> {
    pub values: Tensor<1, K>,
    pub indices: Tensor<1, Int>,
}

impl Request {
    pub fn spec(&self, length: usize, sorted: bool) -> TopkSpec {
        let options = TopkOptions::new(self.k.min(length));
        TopkSpec {
            options: options.with_largest(self.largest).with_sorted(sorted),
            index: self.index,
        }
    }

    pub fn best<K: Ordered>(&self, x: Tensor<1, K>, sorted: bool) -> Selected<K> {
        let spec = self.spec(x.dims()[0], sorted);
        let (values, indices) = select(x, Lengths::<Dispatch>::Whole, spec);
        Selected { values, indices }
    }
}
