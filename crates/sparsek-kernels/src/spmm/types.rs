//! Host-side descriptions of matrices and the names of routines.

use cubecl::server::Handle;

use crate::error::KernelError;

/// The most entries of a matrix: `i32` numbers them, and units count past the end of a row.
pub const MAX_ENTRIES: usize = (1 << 31) - 4096;

/// A CSR pattern in device memory: contiguous `i32` buffers, at most [`MAX_ENTRIES`] entries.
#[derive(Clone, Copy, Debug)]
pub struct Csr<'a> {
    /// `rows + 1` offsets into `indices`, monotone.
    pub indptr: &'a Handle,
    /// Column of each entry, below `cols`.
    pub indices: &'a Handle,
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// Number of entries.
    pub nnz: usize,
}

impl Csr<'_> {
    pub(super) fn check(&self) -> Result<(), KernelError> {
        match self.nnz > MAX_ENTRIES {
            true => Err(KernelError::TooManyEntries {
                entries: self.nnz,
                limit: MAX_ENTRIES,
            }),
            false => Ok(()),
        }
    }
}

/// The values of a CSR matrix: entry `e` weighs `values[e]`, or `values[entries[e]]`.
#[derive(Clone, Copy, Debug)]
pub struct Weights<'a> {
    /// Contiguous, one for each entry, in the dtype of the dense operand.
    pub values: &'a Handle,
    /// Contiguous `i32`: the index into `values` of each entry; the identity when absent.
    pub entries: Option<&'a Handle>,
}

/// Factors of whole rows and columns, such as degree norms.
///
/// Contiguous, f32, or f64 if the other operand is f64.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scales<'a> {
    /// One factor for each row; 1 when absent.
    pub rows: Option<&'a Handle>,
    /// One factor for each column; 1 when absent.
    pub cols: Option<&'a Handle>,
}

/// Routines of [`spmm_compressed`](super::spmm_compressed).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routine {
    /// A plane for each row or part of a row, with sums in shared memory.
    Plane,
    /// [`Routine::Plane`], after copying the columns of each row behind its values.
    ///
    /// Needs f32, whole words of columns, and values and columns of a row in 128 bytes.
    Packed,
    /// A unit for each element of the result.
    Unit,
}

/// All routines.
pub const ROUTINES: [Routine; 3] = [Routine::Plane, Routine::Packed, Routine::Unit];

impl Routine {
    /// The name of the routine.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plane => "plane",
            Self::Packed => "packed",
            Self::Unit => "unit",
        }
    }
}

/// Routine of a product with compressed rows, with the plane size if it uses planes.
#[derive(Clone, Copy)]
pub(super) enum CompressedPlan {
    Packed(u32),
    Plane(u32),
    Unit,
}
