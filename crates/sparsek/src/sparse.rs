//! Sparse matrices: the checked pattern on the host, its copy on a device, CSR matrices with values, rows of which k
//! elements are kept, and products with dense tensors and with such rows.

mod adjacency;
mod compressed;
mod csr;
mod maximum;
mod npz;
mod pattern;
mod product;
mod sorted;

pub use adjacency::Adjacency;
pub(crate) use adjacency::upload;
pub use compressed::{Compressed, sparse_topk};
pub use csr::{Csr, CsrError};
pub use maximum::spmm_max;
pub use npz::NpzError;
pub(crate) use pattern::check_size;
pub use pattern::{MAX_ENTRIES, Pattern, PatternError};
pub use product::{Scaling, spmm, spmm_compressed, spmm_compressed_with, spmm_weighted, spmm_with};
