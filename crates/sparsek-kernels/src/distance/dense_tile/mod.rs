//! Distances by dense tiles in shared memory.
//!
//! ```text
//! for each tile T of rows of y, and chunk of rows of x, in one cube:
//!     for each block B of columns:
//!         tile[c][j] = y[j, c], or absent        for c in B, j in T
//!         for each row i of the chunk:           the next free plane takes it
//!             for each entry (i, c) of value a in B:
//!                 for each j in T:               a lane holds `rows` of them in registers
//!                     sums[j] = reduce(sums[j], product(a, tile[c][j]))
//!             output[i, j] = reduce(output[i, j], sums[j]); finish after the last block
//! ```
//!
//! The work is nnz(x) times the rows of `y`, whatever the columns: for data that is not too sparse.
//! [`Dense`](super::semiring::Dense) says what an entry adds. `Products` and `Left` need one pass,
//! or half a pass for a symmetric distance of a matrix with itself. `Halves` and `Either` need the
//! entries of both rows: two passes, joined by [`join`](super::merge::join); a matrix with itself
//! needs one. Each pair is summed by one lane in a fixed order, so results are deterministic.

mod kernel;
mod launch;
mod tile;

pub(super) use self::launch::{check, launch};
