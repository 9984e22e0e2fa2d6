//! Options of a selection.

use sparsek_kernels::topk::Method;

/// Options of row-wise selections. Rows run along [`dim`](Self::dim).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopkOptions {
    /// Elements per row, at most its length.
    pub k: usize,
    /// Dimension; negative values count from the end. Default: -1.
    pub dim: isize,
    /// The greatest elements (default) or the least.
    pub largest: bool,
    /// Order by value, best first, then index; else by index (default).
    pub sorted: bool,
    /// Method. Default: [`Method::Exact`].
    pub method: Method,
}

impl TopkOptions {
    /// The `k` greatest along the last dimension, exact, in index order.
    pub fn new(k: usize) -> Self {
        Self {
            k,
            dim: -1,
            largest: true,
            sorted: false,
            method: Method::Exact,
        }
    }

    /// Sets [`dim`](Self::dim).
    pub fn with_dim(self, dim: isize) -> Self {
        Self { dim, ..self }
    }

    /// Sets [`largest`](Self::largest).
    pub fn with_largest(self, largest: bool) -> Self {
        Self { largest, ..self }
    }

    /// Sets [`sorted`](Self::sorted).
    pub fn with_sorted(self, sorted: bool) -> Self {
        Self { sorted, ..self }
    }

    /// Sets [`method`](Self::method).
    pub fn with_method(self, method: Method) -> Self {
        Self { method, ..self }
    }
}
