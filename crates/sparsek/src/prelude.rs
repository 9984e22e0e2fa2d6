//! Selections as methods of tensors: `use sparsek::prelude::*;`.
//!
//! From Burn 0.22, add `_exact` to the name; it has no `bottomk`, and its `argtopk` needs k < M. k
//! is a number, d a dimension.
//!
//! | method of x | torch |
//! |---|---|
//! | `topk_exact` | `topk(x, k, d)[0]` |
//! | `argtopk_exact` | `topk(x, k, d)[1]` |
//! | `topk_with_indices_exact` | `topk(x, k, d)` |
//! | `bottomk_exact` | `topk(x, k, d, False)[0]` |
//! | `argbottomk_exact` | `topk(x, k, d, False)[1]` |
//! | `bottomk_with_indices_exact` | `topk(x, k, d, False)` |
//! | `sort_exact` | `sort(x, d)[0]` |
//! | `argsort_exact` | `sort(x, d)[1]` |
//! | `sort_with_indices_exact` | `sort(x, d)` |
//! | `sort_descending_exact` | `sort(x, d, True)[0]` |
//!
//! [`topk`](crate::topk::topk) in index order is `torch.topk(…, sorted=False)` and
//! `numpy.argpartition`, [`kthvalue`](crate::topk::kthvalue) is `torch.kthvalue` and
//! `numpy.partition`.
//!
//! Where the others differ:
//!
//! - **Ties.** Here the lowest index wins. The others promise it for stable sorts at most.
//! - **NaN** is greatest here and in torch; numpy sorts it last either way.
//! - **Indices** have the default integer dtype; Burn's may have that of an integer tensor.
//! - **Repetition.** Equal inputs give equal bits and indices on every backend.

pub use crate::topk::{Method, TopkExt, TopkOptions};
