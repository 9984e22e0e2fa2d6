//! Matrices and routines, as all of the family uses them.

use cubecl::{ir::ElemType, server::Handle};

/// A sparse matrix in device memory: contiguous CSR, columns strictly ascending in each row.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    /// `rows + 1` monotone offsets, i32.
    pub indptr: &'a Handle,
    /// Column of each entry, i32, below `cols`.
    pub indices: &'a Handle,
    /// Value of each entry.
    pub values: &'a Handle,
    /// Dtype of the values: f32, f64, f16 or bf16.
    pub dtype: ElemType,
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Length of the longest row; `cols` if unknown.
    pub longest: usize,
    /// Number of entries.
    pub nnz: usize,
    /// Greatest magnitude of the values, or infinity if one is no whole number, as
    /// [`greatest`](crate::distance::greatest) finds it. `None` if unknown.
    pub greatest: Option<f32>,
}

/// How pairs of rows are processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routine {
    /// A unit merges each pair of rows.
    Merge,
    /// A plane takes a row and a tile of the other matrix, and sums in shared memory by column.
    Inverted,
    /// A cube keeps a tile of rows dense in shared memory.
    DenseTile,
    /// Tensor cores multiply dense f16 copies: inner products of whole numbers only.
    TensorCore,
    /// The paper's routine: a cube keeps a row in shared memory and scans all entries of the other
    /// matrix. Runs only if forced.
    Hybrid,
}

/// All routines.
pub const ROUTINES: [Routine; 5] = [
    Routine::Merge,
    Routine::Inverted,
    Routine::DenseTile,
    Routine::TensorCore,
    Routine::Hybrid,
];

impl Routine {
    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Inverted => "inverted",
            Self::DenseTile => "dense_tile",
            Self::TensorCore => "tensor_core",
            Self::Hybrid => "hybrid",
        }
    }
}

/// A matrix with its norms and prepared values.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// `rows + 1` offsets, i32.
    pub indptr: Handle,
    /// Column of each entry, i32.
    pub indices: Handle,
    /// Prepared values, of [`Self::dtype`].
    pub values: Handle,
    /// Norm and second norm of each row, interleaved. With
    /// [`Rescale::Rows`](crate::distance::Rescale::Rows) and a gradient, the row's power of two
    /// replaces the second norm.
    pub norms: Handle,
    /// Dtype of the computation: f64 for f64, else f32.
    pub dtype: ElemType,
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Length of the longest row.
    pub longest: usize,
    /// Number of entries.
    pub nnz: usize,
    /// As [`Matrix::greatest`].
    pub greatest: Option<f32>,
}
