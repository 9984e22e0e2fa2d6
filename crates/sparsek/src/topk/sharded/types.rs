//! Parts of a vector, and selections from them.

use burn::{
    backend::Dispatch,
    tensor::{Int, IntDType, Tensor, kind::Ordered},
};
use sparsek_kernels::topk::Method;

use super::super::rows::select;
use crate::ops::{Lengths, TopkSpec};

/// Most lists merged in one step.
pub(super) const MERGED: usize = 4;

/// Elements on one device, and the position of the first in the whole vector.
pub(super) struct Part<K: Ordered> {
    pub elements: Tensor<1, K>,
    pub first: i64,
}

/// The selection from each list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub k: usize,
    pub largest: bool,
    pub sorted: bool,
    pub index: IntDType,
}

/// Selected elements with positions in the whole vector or in the list, in index or value order.
pub(super) struct Selected<K: Ordered> {
    pub values: Tensor<1, K>,
    pub indices: Tensor<1, Int>,
}

impl Request {
    /// Selects at most k of `length` elements.
    pub fn spec(&self, length: usize, sorted: bool) -> TopkSpec {
        TopkSpec {
            k: self.k.min(length),
            largest: self.largest,
            sorted,
            method: Method::Exact,
            index: self.index,
        }
    }

    pub fn best<K: Ordered>(&self, x: Tensor<1, K>, sorted: bool) -> Selected<K> {
        let spec = self.spec(x.dims()[0], sorted);
        let (values, indices) = select(x, Lengths::<Dispatch>::Whole, spec);
        Selected { values, indices }
    }
}
