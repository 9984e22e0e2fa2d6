//! Sparse matrices and their products.
//!
//! - [`Pattern`]: on the host; [`Adjacency`]: with its transpose on a device.
//! - [`Csr`]: a matrix; [`Compressed`]: rows of k elements.
//! - Files: [`Csr::from_npz`], [`Csr::from_mtx`], `Csr::from_hdf5`, [`Csr::to_npz`].
//! - Preparation: [`Csr::normalize`], [`Csr::tfidf`], [`Csr::log1p`], [`Csr::scale`],
//!   [`Csr::filter_rows`], [`Csr::vstack`].
//! - Products: [`spmm()`], [`spmm_max`], [`sddmm`].
//! - [`MessagePassing`]: gather, scatter and softmax.
//!
//! Values are f32, f64, f16 or bf16; 16-bit floats sum in f32. Constructors return errors. Products
//! panic if sizes or dtypes do not fit, or the device lacks the dtype.

mod adjacency;
mod compressed;
mod csr;
mod error;
mod files;
mod matmul;
mod messages;
mod pattern;
mod prepare;
mod repeat;
mod sorted;
mod spmm;
#[cfg(feature = "sprs")]
mod sprs;
mod stack;
mod tensor;

pub use adjacency::Adjacency;
pub use compressed::{Compressed, sparse_topk, try_sparse_topk};
pub(crate) use csr::check_dtype;
pub use csr::{Csr, CsrData};
pub use error::{CsrError, PatternError};
pub use files::FileError;
pub use messages::MessagePassing;
pub(crate) use pattern::check_size;
pub use pattern::{MAX_ENTRIES, Pattern};
pub use prepare::{Norm, Tfidf, UnknownNorm};
pub use spmm::{
    Scaling, sddmm, spmm, spmm_compressed, spmm_compressed_with, spmm_max, spmm_weighted, spmm_with,
};
pub(crate) use tensor::upload;
