use burn::tensor::{DType, IntDType};
use sparsek_kernels::distance::Metric;

use crate::sparse::CsrError;

/// Refused distances.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DistanceError {
    /// Different column counts.
    #[error("the matrices have {x} and {y} columns")]
    Columns {
        /// Of `x`.
        x: usize,
        /// Of `y`.
        y: usize,
    },
    /// Different dtypes.
    #[error("the matrices are of {x:?} and {y:?}")]
    Dtypes {
        /// Of `x`.
        x: DType,
        /// Of `y`.
        y: DType,
    },
    /// Different devices.
    #[error("the matrices are on different devices, {x} and {y}")]
    Devices {
        /// Of `x`.
        x: String,
        /// Of `y`.
        y: String,
    },
    /// Parameter out of range.
    #[error("the parameter {p} is not finite and greater than 0")]
    Parameter {
        /// Parameter.
        p: f64,
    },
    /// More neighbors than rows.
    #[error(
        "{k} neighbors of each row, but the index has {rows} rows{}",
        if *.exclude_self { ", one of which is the row itself" } else { "" }
    )]
    Neighbors {
        /// Requested.
        k: usize,
        /// Index rows.
        rows: usize,
        /// Whether rows exclude themselves.
        exclude_self: bool,
    },
    /// No shards.
    #[error("there are no shards to search")]
    Shards,
    /// Too many rows for device indices.
    #[error("{rows} rows, but indices on {device} are of {dtype:?}")]
    Rows {
        /// Rows.
        rows: usize,
        /// Device.
        device: String,
        /// Index dtype.
        dtype: IntDType,
    },
    /// Filter of another size.
    #[error("the filter has {found} {what}, but there are {expected}")]
    Filter {
        /// Queries or index rows.
        what: &'static str,
        /// Found.
        found: usize,
        /// Needed.
        expected: usize,
    },
    /// Too few allowed rows.
    #[error("{k} neighbors of each row, but query {query} has {allowed} allowed rows")]
    Allowed {
        /// Requested.
        k: usize,
        /// First such query.
        query: usize,
        /// Allowed rows.
        allowed: usize,
    },
    /// Distance matrix not square.
    #[error("{rows} × {cols} distances between the rows of one matrix are not square")]
    NotSquare {
        /// Rows.
        rows: usize,
        /// Columns.
        cols: usize,
    },
    /// Metric without weights.
    #[error(
        "{metric} takes no weights of columns; dot, euclidean, sqeuclidean, cosine, manhattan, \
         minkowski, chebyshev and braycurtis do"
    )]
    Weights {
        /// Metric.
        metric: Metric,
    },
    /// Wrong count.
    #[error("{found} {what}, but {expected} are needed")]
    Count {
        /// Weights or labels.
        what: &'static str,
        /// Found.
        found: usize,
        /// Needed.
        expected: usize,
    },
    /// Negative or NaN weight.
    #[error("the weight {weight} of column {column} is not at least 0")]
    Negative {
        /// Column.
        column: usize,
        /// Weight.
        weight: f64,
    },
    /// Distance weights of similarities.
    #[error("neighbors cannot be weighted by similarity: larger is nearer")]
    Similarity,
    /// No neighbors.
    #[error("a prediction needs at least one neighbor")]
    NoNeighbors,
    /// Invalid result matrix.
    #[error(transparent)]
    Csr(#[from] CsrError),
}
