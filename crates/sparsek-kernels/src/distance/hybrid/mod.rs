//! The paper's hybrid of CSR and COO (Algorithm 3, Section 3.3), kept for comparison.
//!
//! ```text
//! for each row of x, in one cube:
//!     for each block of its entries that fits:               3.3.3
//!         hold it in shared memory, dense or hashed          3.3.2
//!         scan all entries of y, a range for each plane, by segmented scans
//! if columns of either row count: scan x by the rows of y    3.3.1
//! make distances from the sums
//! ```
//!
//! The work is the rows of `x` times nnz(y); it runs only if forced. Deterministic: rows that span
//! planes are added in order, where the paper uses atomics.

mod kernel;
mod launch;
mod sums;
mod table;
mod types;

pub(super) use self::launch::{check, launch};
