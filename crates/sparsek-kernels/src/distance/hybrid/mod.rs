//! CSR and COO hybrid (paper, Algorithm 3).
//!
//! ```text
//! for each row of x, in one cube:
//!     for each block of its entries that fits:         3.3.3
//!         hold it in shared memory, dense or hashed    3.3.2
//!         each plane scans a range of y's entries      segmented scans
//! if either row's columns count: swap x and y, again   3.3.1
//! ```
//!
//! Work: rows of `x` · nnz(y). Deterministic: planes add in order.

mod kernel;
mod launch;
mod sums;
mod table;
mod types;

pub(super) use self::launch::{check, launch};
