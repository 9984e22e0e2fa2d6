//! Errors of distances.

use burn::tensor::DType;

use crate::sparse::CsrError;

/// Why distances were refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DistanceError {
    /// Different numbers of columns.
    #[error("the matrices have {x} and {y} columns")]
    Columns {
        /// Columns of `x`.
        x: usize,
        /// Columns of `y`.
        y: usize,
    },
    /// Different dtypes.
    #[error("the matrices are of {x:?} and {y:?}")]
    Dtypes {
        /// Dtype of `x`.
        x: DType,
        /// Dtype of `y`.
        y: DType,
    },
    /// Different devices.
    #[error("the matrices are on different devices, {x} and {y}")]
    Devices {
        /// Device of `x`.
        x: String,
        /// Device of `y`.
        y: String,
    },
    /// Parameter out of range.
    #[error("the parameter {p} is not finite and greater than 0")]
    Parameter {
        /// The parameter.
        p: f64,
    },
    /// More neighbors than rows.
    #[error(
        "{k} neighbors of each row, but the index has {rows} rows{}",
        if *.exclude_self { ", one of which is the row itself" } else { "" }
    )]
    Neighbors {
        /// Requested neighbors.
        k: usize,
        /// Rows of the index.
        rows: usize,
        /// Whether rows exclude themselves.
        exclude_self: bool,
    },
    /// The result is not a valid matrix.
    #[error(transparent)]
    Csr(#[from] CsrError),
}
