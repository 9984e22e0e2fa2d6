//! The paper's CSR and COO hybrid (Algorithm 3, Section 3.3), for comparison; runs only if forced.
//!
//! ```text
//! for each row of x, in one cube:
//!     for each block of its entries that fits:         3.3.3
//!         hold it in shared memory, dense or hashed    3.3.2
//!         scan all entries of y by segmented scans, a range a plane
//! if either row's columns count: swap x and y, again   3.3.1
//! finish
//! ```
//!
//! Work: rows of `x` · nnz(y). Deterministic: rows that span planes add in order, not by the
//! paper's atomics.

mod kernel;
mod launch;
mod sums;
mod table;
mod types;

pub(super) use self::launch::{check, launch};
