#[cfg(feature = "kernels")]
use cubecl::{ir::ElemType, server::Handle};

/// Device CSR matrix: columns strictly ascending.
#[cfg(feature = "kernels")]
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    /// `rows+1` monotone offsets, i32.
    pub indptr: &'a Handle,
    /// Columns, i32, below `cols`.
    pub indices: &'a Handle,
    /// Values, of [`Self::dtype`].
    pub values: &'a Handle,
    /// f32, f64, f16 or bf16.
    pub dtype: ElemType,
    /// Row count.
    pub rows: usize,
    /// Column count.
    pub cols: usize,
    /// Longest row, or `cols`.
    pub longest: usize,
    /// Entry count.
    pub nnz: usize,
    /// Result of [`greatest`](crate::distance::greatest), if known.
    pub greatest: Option<f32>,
}

/// How pairs are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Routine {
    /// A unit merges both rows.
    Merge,
    /// A plane walks an inverted index.
    Inverted,
    /// A cube holds a dense tile.
    DenseTile,
    /// A cube holds dense blocks of both.
    RegisterTile,
    /// f16 tensor cores, for whole numbers.
    TensorCore,
    /// Paper, Algorithm 3, if forced.
    Hybrid,
    /// Paper, Algorithm 1, if forced.
    ExpandSort,
}

/// All routines.
pub const ROUTINES: [Routine; 7] = [
    Routine::Merge,
    Routine::Inverted,
    Routine::DenseTile,
    Routine::RegisterTile,
    Routine::TensorCore,
    Routine::Hybrid,
    Routine::ExpandSort,
];

impl Routine {
    /// Name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Inverted => "inverted",
            Self::DenseTile => "dense_tile",
            Self::RegisterTile => "register_tile",
            Self::TensorCore => "tensor_core",
            Self::Hybrid => "hybrid",
            Self::ExpandSort => "expand_sort",
        }
    }
}

/// Comparison of dense rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DenseForm {
    /// Σ(x−y)², or its root.
    Difference {
        /// Root.
        root: bool,
    },
    /// ½‖x−y‖² ≤ 2, of unit rows.
    Angle {
        /// Rows less their means.
        centered: bool,
    },
    /// Σxy.
    Product,
}

/// Matrix with norms.
#[cfg(feature = "kernels")]
#[derive(Clone, Debug)]
pub struct Prepared {
    /// `rows+1` offsets, i32.
    pub indptr: Handle,
    /// Columns, i32.
    pub indices: Handle,
    /// Prepared values, of [`Self::dtype`].
    pub values: Handle,
    /// Norm, second norm per row; with [`Gradient::Angle`](crate::distance::Gradient::Angle), its
    /// power of two is second.
    pub norms: Handle,
    /// f64 for f64, else f32.
    pub dtype: ElemType,
    /// Row count.
    pub rows: usize,
    /// Column count.
    pub cols: usize,
    /// Longest row.
    pub longest: usize,
    /// Entry count.
    pub nnz: usize,
    /// As [`Matrix::greatest`].
    pub greatest: Option<f32>,
}
