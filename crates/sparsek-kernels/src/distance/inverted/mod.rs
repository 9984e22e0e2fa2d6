//! Distances by an inverted index, after Gustavson's sparse product.
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
//! A row has a column once, so lanes write different sums: no atomics, and a fixed order of
//! additions. The work is the pairs of entries with equal columns, and no more. Finished
//! [`parts`](super::prepare::parts) of long rows wait in the output. For a symmetric distance of a
//! matrix with itself, tiles before the row are skipped and mirrored.
//!
//! Chosen for sparse data, if columns of one row add nothing.

mod accumulator;
mod kernel;
mod launch;

pub(super) use self::launch::{check, launch};
