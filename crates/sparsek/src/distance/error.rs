//! Errors of distances.

use burn::tensor::{DType, IntDType};
use sparsek_kernels::distance::Metric;

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
    /// No shards.
    #[error("there are no shards to search")]
    Shards,
    /// More rows than indices of the device can number.
    #[error("{rows} rows, but indices on {device} are of {dtype:?}")]
    Rows {
        /// Rows of all shards or parts.
        rows: usize,
        /// The device of the results.
        device: String,
        /// Its indices.
        dtype: IntDType,
    },
    /// A filter for other queries or index rows.
    #[error("the filter has {found} {what}, but there are {expected}")]
    Filter {
        /// Queries or index rows.
        what: &'static str,
        /// Those of the filter.
        found: usize,
        /// Those of the search.
        expected: usize,
    },
    /// More neighbors than a filter allows.
    #[error("{k} neighbors of each row, but query {query} has {allowed} allowed rows")]
    Allowed {
        /// Requested neighbors.
        k: usize,
        /// The first query with fewer.
        query: usize,
        /// Its allowed rows, without itself.
        allowed: usize,
    },
    /// A matrix of distances that is not square.
    #[error("{rows} × {cols} distances between the rows of one matrix are not square")]
    NotSquare {
        /// Rows.
        rows: usize,
        /// Columns.
        cols: usize,
    },
    /// Weights that scaled columns cannot express.
    #[error(
        "{metric} takes no weights of columns; dot, euclidean, sqeuclidean, cosine, manhattan, \
         minkowski, chebyshev and braycurtis do"
    )]
    Weights {
        /// The metric.
        metric: Metric,
    },
    /// Another number of weights or labels than needed.
    #[error("{found} {what}, but {expected} are needed")]
    Count {
        /// Weights or labels.
        what: &'static str,
        /// Their number.
        found: usize,
        /// The needed number.
        expected: usize,
    },
    /// A weight is negative or NaN.
    #[error("the weight {weight} of column {column} is not at least 0")]
    Negative {
        /// The column.
        column: usize,
        /// Its weight.
        weight: f64,
    },
    /// Weights by distance need a distance.
    #[error("neighbors cannot be weighted by similarity: larger is nearer")]
    Similarity,
    /// A prediction from no neighbors.
    #[error("a prediction needs at least one neighbor")]
    NoNeighbors,
    /// The result is not a valid matrix.
    #[error(transparent)]
    Csr(#[from] CsrError),
}
