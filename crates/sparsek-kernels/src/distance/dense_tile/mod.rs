//! Distances by dense tiles in shared memory.
//!
//! ```text
//! for each tile T of rows of y, and chunk of rows of x, in one cube:
//!     for each block B of columns:
//!         tile[c][j] = y[j, c], or absent        for c in B, j in T
//!         for each row i of the chunk:           the next free plane takes it
//!             for each entry (i, c) of value a in B:
//!                 for each j in T:               sums in registers
//!                     sums[j] = reduce(sums[j], product(a, tile[c][j]))
//!             output[i, j] = reduce(output[i, j], sums[j]); finish after the last block
//! ```
//!
//! The work is nnz(x) times the rows of `y`: for data that is not too sparse. Each pair is summed
//! in a fixed order. [`Dense`](super::semiring::Dense) says what an entry adds. `Products` and
//! `Left` need one pass, or half of one for a symmetric distance of a matrix with itself. `Halves`
//! and `Either` need the entries of both rows: two passes that [`join`](super::merge::join) adds,
//! or one for a matrix with itself.

mod kernel;
mod launch;
mod tile;

pub(super) use self::launch::{check, launch};
