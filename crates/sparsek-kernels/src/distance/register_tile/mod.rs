//! Tiles of sums in registers.
//!
//! ```text
//! for each tile I × J of pairs, in one cube:
//!     sums[i, j] = identity                      of a unit: a few i, a few j, in registers
//!     for each block B of columns:
//!         left[c][i] = x[i, c], or 0             c in B, i in I
//!         right[c][j] = y[j, c], or 0            c in B, j in J
//!         for each c: sums[i, j] = reduce(sums[i, j], product(left[c][i], right[c][j]))
//! ```
//!
//! Work: all pairs · columns. Cancellation needs no second evaluation. No planes.

mod kernel;
mod launch;
mod slab;
mod sums;

pub(super) use self::launch::{check, launch};
