//! Sparse matrices and their products.
//!
//! - [`Pattern`]: a checked CSR pattern on the host; [`Adjacency`]: it and its transpose on a
//!   device.
//! - [`Csr`]: a matrix with values on a device; [`Compressed`]: rows that keep k elements.
//! - Files of scipy, Matrix Market and, with the feature `hdf5`, AnnData: [`Csr::from_npz`],
//!   [`Csr::from_mtx`], `Csr::from_hdf5`, [`Csr::to_npz`].
//! - With the feature `sprs`, matrices of that crate: `Csr::from_sprs`, `Csr::to_sprs`.
//! - Data preparation: [`Csr::normalize`], [`Csr::tfidf`], [`Csr::log1p`], [`Csr::scale`],
//!   [`Csr::filter_rows`], [`Csr::vstack`].
//! - [`spmm()`] and variants, [`spmm_max`]: products with dense tensors and compressed rows;
//!   [`sddmm`]: sampled products of two dense tensors.
//! - [`MessagePassing`]: gather, scatter and softmax along the entries of a pattern.
//!
//! Values are f32, f64, f16 or bf16, if the device has the dtype; 16-bit floats are summed in f32.
//! Constructors return typed errors; products panic.

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
