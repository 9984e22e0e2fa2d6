//! Selections as methods of tensors: `use sparsek::prelude::*;`.
//!
//! From Burn, add `_exact` to the name. k is a number, d a dimension.
//!
//! | method of x | Burn 0.22 | torch |
//! |---|---|---|
//! | `topk_exact` | `topk` | `topk(x, k, d)[0]` |
//! | `argtopk_exact` | `argtopk`, k < M | `topk(x, k, d)[1]` |
//! | `topk_with_indices_exact` | `topk_with_indices` | `topk(x, k, d)` |
//! | `bottomk_exact` | – | `topk(x, k, d, False)[0]` |
//! | `argbottomk_exact` | – | `topk(x, k, d, False)[1]` |
//! | `bottomk_with_indices_exact` | – | `topk(x, k, d, False)` |
//! | `sort_exact` | `sort` | `sort(x, d)[0]` |
//! | `argsort_exact` | `argsort` | `sort(x, d)[1]` |
//! | `sort_with_indices_exact` | `sort_with_indices` | `sort(x, d)` |
//! | `sort_descending_exact` | `sort_descending` | `sort(x, d, True)[0]` |
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
//! - **Repetition.** Equal inputs give equal bits and equal indices on every backend.

pub use crate::topk::{Method, TopkExt, TopkOptions};
