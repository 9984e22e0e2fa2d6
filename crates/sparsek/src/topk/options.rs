//! Options of a selection.

use sparsek_kernels::topk::Method;

/// Options of the row-wise selections.
///
/// A "row" is a line of the tensor along [`dim`](Self::dim).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopkOptions {
    /// Elements selected per row, from 0 to its length.
    pub k: usize,
    /// Dimension of the rows; negative values count from the end. Default: -1.
    pub dim: isize,
    /// Select the greatest elements (default) or the least.
    pub largest: bool,
    /// Order by value, best first, then by index; else by index (default).
    pub sorted: bool,
    /// Selection method. Default: [`Method::Exact`].
    pub method: Method,
}

impl TopkOptions {
    /// The `k` greatest elements along the last dimension, exact, in index order.
    pub fn new(k: usize) -> Self {
        Self {
            k,
            dim: -1,
            largest: true,
            sorted: false,
            method: Method::Exact,
        }
    }

    /// Sets the dimension of the rows; negative values count from the end.
    pub fn with_dim(self, dim: isize) -> Self {
        Self { dim, ..self }
    }

    /// Selects the greatest (true) or the least elements.
    pub fn with_largest(self, largest: bool) -> Self {
        Self { largest, ..self }
    }

    /// Orders the output by value (true) or by index.
    pub fn with_sorted(self, sorted: bool) -> Self {
        Self { sorted, ..self }
    }

    /// Sets the selection method.
    pub fn with_method(self, method: Method) -> Self {
        Self { method, ..self }
    }
}
