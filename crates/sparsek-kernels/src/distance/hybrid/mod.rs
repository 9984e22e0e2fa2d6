//! The paper's hybrid of CSR and COO (Algorithm 3, Section 3.3), kept for comparison.
//!
//! ```text
//! for each row of x, in one cube:
//!     hold it in shared memory, dense or as a hash table       3.3.2
//!     for each block of its entries that fits:                 3.3.3
//!         scan all entries of y, an equal range for each plane
//!         sum each row of y by a segmented scan
//! if products run over the columns of either row:              3.3.1
//!     scan x by the rows of y, for the columns that y lacks
//! make distances from the sums
//! ```
//!
//! The work is the rows of `x` times nnz(y). No dispatch chooses it; it runs if forced.
//!
//! Deterministic: the parts of a row that spans several planes are added in order, where the paper
//! uses atomics.

mod kernel;
mod launch;
mod sums;
mod table;
mod types;

pub(super) use self::launch::{check, launch};
