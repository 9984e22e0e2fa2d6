//! Inverted index after Gustavson.
//!
//! ```text
//! for each row i of x and tile T of rows of y, in one plane:
//!     sums[0..|T|] = identity                     shared memory
//!     for each entry (i, c) of value a:           ascending columns
//!         for each entry (j, c) of value b in T:  one lane each
//!             sums[j] = reduce(sums[j], product(a, b))
//!     distance[i, j] = finish(sums[j])            j in T
//! ```
//!
//! Lanes write different sums, as rows have a column once: no atomics, deterministic. Work: entry
//! pairs with equal columns. Finished [`parts`](super::prepare::parts) wait in the output.

mod accumulator;
mod kernel;
mod launch;

pub(super) use self::launch::{check, launch};
