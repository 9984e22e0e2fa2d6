//! Distances by an inverted index, after Gustavson's sparse product.
//!
//! The index stores the entries of `y` by column, for each tile of rows
//! ([`Columns`](super::prepare::columns::Columns)).
//!
//! ```text
//! for each row i of x and tile T of rows of y, in one plane:
//!     sums[0..|T|] = identity                     shared memory
//!     for each entry (i, c) of value a:           in ascending columns
//!         for each entry (j, c) of value b in T:  one lane each
//!             sums[j] = reduce(sums[j], product(a, b))
//!     for each j in T: distance[i, j] = finish(sums[j])
//! ```
//!
//! Each row has a column at most once, so the lanes of a step write different sums. There are no
//! atomics, and the order of additions is fixed: the result is deterministic. The work is the pairs
//! of entries with equal columns, and no more.
//!
//! Long rows are summed in [`parts`](super::prepare::parts); finished parts wait in the output.
//! Where `x` and `y` are one matrix and the distance is symmetric, tiles before the row are skipped
//! and mirrored. Chosen for sparse data whenever columns of one row add nothing.

mod accumulator;
mod kernel;
mod launch;

pub(super) use self::launch::{check, launch};
