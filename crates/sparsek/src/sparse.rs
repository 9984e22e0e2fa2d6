//! Sparse matrices: the checked pattern on the host, its copy on a device, CSR matrices with values, and products with
//! dense tensors.

mod adjacency;
mod csr;
mod maximum;
mod npz;
mod pattern;
mod sorted;

pub(crate) use adjacency::upload;
pub use adjacency::{Adjacency, spmm, spmm_weighted};
pub use csr::{Csr, CsrError};
pub use maximum::spmm_max;
pub use npz::NpzError;
pub(crate) use pattern::check_size;
pub use pattern::{MAX_ENTRIES, Pattern, PatternError};
