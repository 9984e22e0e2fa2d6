#[cfg(feature = "kernels")]
use cubecl::server::Handle;

#[cfg(feature = "kernels")]
use crate::error::KernelError;

/// Most entries: `i32` counts them, and past a row's end.
pub const MAX_ENTRIES: usize = (1 << 31) - 4096;

/// CSR pattern: `i32`.
#[cfg(feature = "kernels")]
#[derive(Clone, Copy, Debug)]
pub struct Csr<'a> {
    /// `rows + 1` monotone offsets.
    pub indptr: &'a Handle,
    /// Columns, below `cols`.
    pub indices: &'a Handle,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Entries.
    pub nnz: usize,
}

#[cfg(feature = "kernels")]
impl Csr<'_> {
    pub(super) fn check(&self) -> Result<(), KernelError> {
        check_entries(self.nnz)
    }
}

#[cfg(feature = "kernels")]
pub(super) fn check_entries(entries: usize) -> Result<(), KernelError> {
    match entries > MAX_ENTRIES {
        true => Err(KernelError::TooManyEntries { entries, limit: MAX_ENTRIES }),
        false => Ok(()),
    }
}

/// Weights of entries: `values[e]`, or `values[entries[e]]`.
#[cfg(feature = "kernels")]
#[derive(Clone, Copy, Debug)]
pub struct Weights<'a> {
    /// In the dense operand's dtype.
    pub values: &'a Handle,
    /// `i32`; the identity when absent.
    pub entries: Option<&'a Handle>,
}

/// Row and column factors: f32, or f64 for f64.
#[cfg(feature = "kernels")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Scales<'a> {
    /// One per row; 1 when absent.
    pub rows: Option<&'a Handle>,
    /// One per column; 1 when absent.
    pub cols: Option<&'a Handle>,
}

/// Routines of [`spmm_compressed`](super::spmm_compressed).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routine {
    /// Plane per item, with sums in shared memory.
    Plane,
    /// [`Routine::Plane`] on rows packed with columns: f32, ≤ 128 bytes.
    Packed,
    /// Unit per result element.
    Unit,
}

/// All routines.
pub const ROUTINES: [Routine; 3] = [Routine::Plane, Routine::Packed, Routine::Unit];

impl Routine {
    /// Name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plane => "plane",
            Self::Packed => "packed",
            Self::Unit => "unit",
        }
    }
}

#[cfg(feature = "kernels")]
#[derive(Clone, Copy)]
pub(super) enum CompressedPlan {
    Packed(u32),
    Plane(u32),
    Unit,
}
