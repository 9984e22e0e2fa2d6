//! ```text
//! gather:  one row per entry, from its column (source) or its row (target)
//! scatter: one row per row of the pattern, reduced over its entries in order
//! ```
//!
//! Products with one entry per message make results and gradients deterministic, unlike `select`
//! and `scatter`.

use burn::tensor::{DType, Device, FloatDType, Int, Tensor};

use super::{
    adjacency::Adjacency,
    pattern::Pattern,
    spmm::{Scaling, sddmm, spmm, spmm_max, spmm_weighted, spmm_with},
    tensor::upload,
};

/// Gather, scatter and softmax along a pattern's entries.
///
/// Entry `e = (i, j)` is a message from source `j` to target `i`; messages are `[nnz, d]`.
/// Deterministic, differentiable. Empty rows give 0. Clones share the [`Adjacency`] and
/// `64 nnz + 20 (rows + cols)` bytes.
///
/// Here `y[i] = max (x[j] - x[i])²`:
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::sparse::{MessagePassing, Pattern};
///
/// let device = Device::flex();
/// let pattern = Pattern::new(3, 3, vec![0, 2, 3, 3], vec![1, 2, 0]).unwrap();
/// let edges = MessagePassing::new(&pattern, &device);
/// let x = Tensor::<2>::from_data([[1.0], [3.0], [6.0]], &device);
/// let messages = edges.gather(x.clone()) - edges.gather_targets(x);
/// let y = edges.scatter_max(messages.square());
/// y.into_data().assert_eq(&TensorData::from([[25.0], [4.0], [0.0]]), false);
/// ```
#[derive(Clone, Debug)]
pub struct MessagePassing {
    adjacency: Adjacency,
    /// `[nnz, cols]`.
    sources: Adjacency,
    /// `[nnz, rows]`.
    targets: Adjacency,
    /// `[rows, nnz]`.
    incoming: Adjacency,
    /// At least 1.
    counts: Tensor<1, Int>,
}

impl MessagePassing {
    /// Uploads a pattern and its entry maps.
    pub fn new(pattern: &Pattern, device: &Device) -> Self {
        Self::with_adjacency(pattern, Adjacency::new(pattern, device), device)
    }

    /// Takes the pattern's adjacency; panics if sizes differ.
    pub fn with_adjacency(pattern: &Pattern, adjacency: Adjacency, device: &Device) -> Self {
        let (rows, nnz) = (pattern.rows(), pattern.nnz());
        let found = [adjacency.rows(), adjacency.cols(), adjacency.nnz()];
        let expected = [rows, pattern.cols(), nnz];
        assert!(found == expected, "MessagePassing: {found:?} of an adjacency, not {expected:?}");
        let map = |rows, cols, indptr, indices| {
            let pattern = Pattern::new(rows, cols, indptr, indices).expect("parts of a pattern");
            Adjacency::new(&pattern, device)
        };
        let each = || (0..=nnz as u32).collect::<Vec<u32>>();
        let sources = map(nnz, pattern.cols(), each(), pattern.indices().to_vec());
        let entries = (0..nnz as u32).collect();
        let incoming = map(rows, nnz, pattern.indptr().to_vec(), entries);
        let lengths = pattern.indptr().windows(2).map(|ends| (ends[1] - ends[0]).max(1));
        Self {
            adjacency,
            sources,
            targets: incoming.transposed(),
            incoming,
            counts: upload(&lengths.collect::<Vec<u32>>(), device),
        }
    }

    /// Pattern on the device.
    pub fn adjacency(&self) -> &Adjacency {
        &self.adjacency
    }

    /// `y[e] = x[j]`: `[cols, d]` → `[nnz, d]`.
    pub fn gather(&self, x: Tensor<2>) -> Tensor<2> {
        check("gather", "x", x.dims()[0], self.adjacency.cols());
        spmm(&self.sources, x)
    }

    /// `y[e] = x[i]`: `[rows, d]` → `[nnz, d]`.
    pub fn gather_targets(&self, x: Tensor<2>) -> Tensor<2> {
        check("gather_targets", "x", x.dims()[0], self.adjacency.rows());
        spmm(&self.targets, x)
    }

    /// `y[i] = Σ m[e]` over row `i`: `[nnz, d]` → `[rows, d]`.
    pub fn scatter_sum(&self, messages: Tensor<2>) -> Tensor<2> {
        self.check_messages("scatter_sum", &messages);
        spmm(&self.incoming, messages)
    }

    /// [`scatter_sum`](Self::scatter_sum), divided by each row's entry count.
    pub fn scatter_mean(&self, messages: Tensor<2>) -> Tensor<2> {
        self.check_messages("scatter_mean", &messages);
        let sum = match messages.dtype() {
            DType::F64 => FloatDType::F64,
            _ => FloatDType::F32,
        };
        let shares = self.counts.clone().cast(sum).recip();
        spmm_with(&self.incoming, messages, &Scaling::default().with_rows(shares))
    }

    /// `y[i] = max m[e]` over row `i`. The gradient goes to the first winner. NaN is unspecified.
    pub fn scatter_max(&self, messages: Tensor<2>) -> Tensor<2> {
        self.check_messages("scatter_max", &messages);
        spmm_max(&self.incoming, messages)
    }

    /// Minimum, as [`scatter_max`](Self::scatter_max).
    pub fn scatter_min(&self, messages: Tensor<2>) -> Tensor<2> {
        self.check_messages("scatter_min", &messages);
        spmm_max(&self.incoming, messages.neg()).neg()
    }

    /// `y[e] = exp(s[e]) / Σ exp(s[f])` over e's row, per column: `[nnz, heads]`. Finite scores
    /// cannot overflow.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor, TensorData};
    /// use sparsek::sparse::{MessagePassing, Pattern};
    ///
    /// let device = Device::flex();
    /// let pattern = Pattern::new(2, 2, vec![0, 2, 3], vec![0, 1, 1]).unwrap();
    /// let edges = MessagePassing::new(&pattern, &device);
    /// let y = edges.edge_softmax(Tensor::from_data([[500.0], [500.0], [-3.0]], &device));
    /// y.into_data().assert_eq(&TensorData::from([[0.5], [0.5], [1.0]]), false);
    /// ```
    pub fn edge_softmax(&self, scores: Tensor<2>) -> Tensor<2> {
        self.check_messages("edge_softmax", &scores);
        // Shifts cancel, so the maximum needs no gradient.
        let constant = scores.clone().detach().set_require_grad(false);
        let powers = (scores - self.gather_targets(self.scatter_max(constant))).exp();
        let sums = self.scatter_sum(powers.clone());
        powers / self.gather_targets(sums)
    }

    /// [`sddmm`] per head: `[rows, heads, d]` and `[cols, heads, d]` → `[nnz, heads]`.
    pub fn sddmm(&self, left: Tensor<3>, right: Tensor<3>) -> Tensor<2> {
        let [_, heads, _] = right.dims();
        check("sddmm", "left", left.dims()[1], heads);
        let product = |head| {
            let (left, right) = (of_head(&left, head), of_head(&right, head));
            sddmm(&self.adjacency, left, right).reshape([self.adjacency.nnz(), 1])
        };
        Tensor::cat((0..heads).map(product).collect(), 1)
    }

    /// [`spmm_weighted`] per head, without storing messages.
    ///
    /// `weights`: `[nnz, heads]`; `x`: `[cols, heads, d]`; result: `[rows, heads, d]`.
    pub fn propagate(&self, weights: Tensor<2>, x: Tensor<3>) -> Tensor<3> {
        self.check_messages("propagate", &weights);
        let [_, heads, width] = x.dims();
        let (rows, nnz) = (self.adjacency.rows(), self.adjacency.nnz());
        check("propagate", "heads of the weights", weights.dims()[1], heads);
        let product = |head| {
            let weights = weights.clone().narrow(1, head, 1).reshape([nnz]);
            spmm_weighted(&self.adjacency, weights, of_head(&x, head))
        };
        Tensor::cat((0..heads).map(product).collect(), 1).reshape([rows, heads, width])
    }

    fn check_messages(&self, operation: &str, messages: &Tensor<2>) {
        check(operation, "messages", messages.dims()[0], self.adjacency.nnz());
    }
}

fn of_head(x: &Tensor<3>, head: usize) -> Tensor<2> {
    let [rows, _, width] = x.dims();
    x.clone().narrow(1, head, 1).reshape([rows, width])
}

fn check(operation: &str, what: &str, found: usize, expected: usize) {
    assert!(found == expected, "{operation}: {what}: {found}, but the pattern needs {expected}");
}
