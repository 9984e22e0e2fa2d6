//! Expand, sort, contract (paper, Algorithm 1).
//!
//! ```text
//! one cube per pair:
//!     expand:   both rows into shared memory, one after the other
//!     sort:     by column, bitonic
//!     contract: ⊗ of equal neighbors, else with zero; ⊕ of all
//! ```
//!
//! O(n log² n) for n entries, which must fit shared memory.

mod kernel;
mod launch;

pub(super) use self::launch::{check, launch};
