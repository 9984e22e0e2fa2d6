//! Dense tiles in shared memory. Work: nnz(x) · rows of `y`.
//!
//! ```text
//! for each tile T of rows of y, and chunk of rows of x, in one cube:
//!     for each block B of columns:
//!         tile[c][j] = y[j, c], or absent        c in B, j in T
//!         for each row i of the chunk:           one plane
//!             for each entry (i, c) of value a in B:
//!                 sums[j] = reduce(sums[j], product(a, tile[c][j]))    j in T
//!             output[i, j] = reduce(output[i, j], sums[j])
//! ```
//!
//! `Halves` and `Either` of [`Dense`](super::semiring::Dense) take two passes, which
//! [`join`](super::merge::join) adds, or one for a matrix with itself.

mod kernel;
mod launch;
mod tile;

pub(super) use self::launch::{check, launch};
