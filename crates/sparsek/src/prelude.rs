//! Selections as methods of tensors: `use sparsek::prelude::*;`.
//!
//! From Burn, add `_exact` to the name. x is a tensor, k a number, d a dimension, `o` a
//! [`TopkOptions`].
//!
//! | sparsek | Burn 0.22 | torch | numpy, along the last axis |
//! |---|---|---|---|
//! | `x.topk_exact(k, d)` | `x.topk(k, d)` | `topk(x, k, d).values` | `sort(x)[..., :-k-1:-1]` |
//! | `x.topk_with_indices_exact(k, d)` | `x.topk_with_indices(k, d)` | `topk(x, k, d)` | – |
//! | `x.argtopk_exact(k, d)` | `x.argtopk(k, d)`, k < M | `topk(x, k, d).indices` | `argsort(-x, stable=True)[..., :k]` |
//! | `x.bottomk_exact(k, d)` | `x.sort(d)`, cut | `topk(x, k, d, largest=False).values` | `sort(x)[..., :k]` |
//! | `x.bottomk_with_indices_exact(k, d)` | `x.sort_with_indices(d)`, cut | `topk(x, k, d, largest=False)` | – |
//! | `x.argbottomk_exact(k, d)` | `x.argsort(d)`, cut | `topk(x, k, d, largest=False).indices` | `argsort(x, stable=True)[..., :k]` |
//! | `x.sort_exact(d)` | `x.sort(d)` | `sort(x, d).values` | `sort(x)` |
//! | `x.sort_descending_exact(d)` | `x.sort_descending(d)` | `sort(x, d, descending=True).values` | `sort(x)[..., ::-1]` |
//! | `x.sort_with_indices_exact(d)` | `x.sort_with_indices(d)` | `sort(x, d, stable=True)` | – |
//! | `x.argsort_exact(d)` | `x.argsort(d)` | `argsort(x, d, stable=True)` | `argsort(x, stable=True)` |
//! | [`kthvalue(x, &o, d)`](crate::topk::kthvalue), `o.largest` false | – | `kthvalue(x, k, d, keepdim=True)` | `partition(x, k - 1)[..., k - 1]` |
//! | [`topk(x, &o, d)`](crate::topk::topk) | – | `topk(x, k, d, sorted=False)`, in any order | `argpartition(x, -k)[..., -k:]`, in any order |
//!
//! Where the others differ:
//!
//! - **Ties.** Here the lowest index wins. Burn, torch's `topk` and numpy's partitions leave it open.
//! - **NaN** is greatest here and in torch; numpy sorts it last either way.
//! - **Indices** have the device's default integer dtype; Burn's may have that of an integer tensor.
//! - **Repetition.** Equal inputs give equal bits and equal indices on every backend.

pub use crate::topk::{Method, TopkExt, TopkOptions};
