//! HEAD

use cubecl::{ir::ElemType, server::Handle};

/// A sparse matrix in device memory: CSR in contiguous buffers, columns of a row ascending, none twice.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    /// `rows + 1` offsets of i32, monotone.
    pub indptr: &'a Handle,
    /// Column of each entry, i32, below `cols`.
    pub indices: &'a Handle,
    /// Value of each entry.
    pub values: &'a Handle,
    /// Dtype of the values: f32, f64, f16 or bf16.
    pub dtype: ElemType,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Entries that no row has more of; as many as columns where that is not known.
    pub longest: usize,
    /// Entries.
    pub nnz: usize,
    /// The greatest magnitude of the values, infinite if they are not whole numbers, where that is known: by [`greatest`](crate::distance::greatest).
    pub greatest: Option<f32>,
}

/// How pairs of rows are gone through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routine {
    /// A unit for each pair merges both rows.
    Merge,
    /// A plane for each row and tile of the other matrix's rows adds up in shared memory, by the columns of the tile.
    Inverted,
    /// A cube for each tile of rows has them dense in shared memory.
    DenseTile,
    /// Tensor cores multiply both matrices, laid out densely: inner products of whole numbers.
    TensorCore,
    /// A cube for each row has it in shared memory and goes through all entries of the other matrix, as in the paper. Only where
    /// forced.
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
    /// Its name.
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

/// A matrix as kernels of distances take it.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// `rows + 1` offsets of i32.
    pub indptr: Handle,
    /// Columns of i32.
    pub indices: Handle,
    /// Prepared values, of [`Self::dtype`].
    pub values: Handle,
    /// Norm and second norm of each row. Where rows are multiplied by a power of two and there is a
    /// gradient, that one takes the place of the second norm.
    pub norms: Handle,
    /// The dtype that is computed in: f64, or f32.
    pub dtype: ElemType,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Entries that no row has more of.
    pub longest: usize,
    /// Entries.
    pub nnz: usize,
    /// The greatest magnitude of the values, infinite if they are not whole numbers, where that is known.
    pub greatest: Option<f32>,
}
