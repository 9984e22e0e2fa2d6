//! Sparse matrices: the checked pattern on the host, its copy on a device, and products with dense
//! tensors.

mod adjacency;
mod pattern;

pub use adjacency::{Adjacency, spmm, spmm_weighted};
pub use pattern::{MAX_ENTRIES, Pattern, PatternError};
