//! The rows of a search, and the search itself.

use std::{future::Future, ops::Range, sync::Arc};

use burn::tensor::{DType, Device, Int, Tensor};

use super::{error::DistanceError, measure::Measure};
use crate::sparse::{Csr, CsrError};

/// Rows to search or compare: sparse, a [`Csr`], or dense, a `Tensor<2>` of f32, f64, f16 or bf16.
///
/// Index and queries are of one type; [`AnySamples`](super::AnySamples) holds either kind. No other
/// type can implement the trait.
pub trait Samples: Rows {}

/// What a search needs of its rows.
pub trait Rows: Clone + Send + Sync + 'static {
    /// What is derived from an index once.
    type Prepared: Clone + Default + Send + Sync;

    fn rows(&self) -> usize;
    fn cols(&self) -> usize;
    fn dtype(&self) -> DType;
    fn device(&self) -> Device;
    /// Copies the rows to another device, through the host, without a gradient.
    fn copy_to(&self, device: &Device) -> Result<Self, CsrError>;
    fn slice_rows(&self, rows: Range<usize>) -> Self;
    fn select_rows(&self, rows: &[usize]) -> Self;
    /// The rows as a matrix; dense rows are read once.
    fn to_csr(&self) -> impl Future<Output = Result<Csr, CsrError>>;
    /// The rows as a matrix whose values carry the gradient of all elements, zeros included.
    fn to_tracked_csr(&self) -> Result<Csr, CsrError>;
    /// The index as a matrix, converted once.
    fn prepared_csr(
        &self,
        prepared: &Self::Prepared,
    ) -> impl Future<Output = Result<Csr, CsrError>>;
    /// The measure for parts of these rows, so that they get the distances of the whole.
    fn measure_of_parts(&self, measure: Measure) -> Measure;
    /// Columns times factors; zeros stay zeros.
    fn scale_cols(&self, factors: Tensor<1>) -> Self;
    /// Whether this index is searched for the queries without a conversion.
    fn is_direct(&self, query: &Self, measure: &Measure) -> bool;
    /// The k nearest of a checked request.
    fn nearest(
        search: &NearestNeighbors<Self>,
        query: &Self,
        k: usize,
        exclude_self: bool,
    ) -> impl Future<Output = Result<Nearest, DistanceError>>
    where
        Self: Samples;
}

/// Brute-force nearest neighbors among sparse or dense rows.
///
/// Batches hold at most 512 MiB of sparse rows' distances, at most an eighth of the free memory, or
/// 1 GiB of dense rows', unless set. A sparse index with above 256 MiB of column counters is
/// searched in parts. Neither changes results.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::{
///     distance::{Metric, NearestNeighbors},
///     sparse::Csr,
/// };
///
/// let x = Tensor::<2>::from_data([[1.0, 0.0], [0.0, 4.0], [2.0, 0.0]], &Device::flex());
/// let index = NearestNeighbors::fit(Csr::from_dense(x).unwrap(), Metric::Manhattan);
/// let (distances, indices) = index.kneighbors(None, 1).unwrap();
/// distances.into_data().assert_eq(&TensorData::from([[1.0], [5.0], [1.0]]), false);
/// indices.into_data().assert_eq(&TensorData::from([[2], [0], [0]]), false);
/// ```
///
/// # Dense rows
///
/// A `Tensor<2>` of rows, such as embeddings, has all methods of a [`Csr`]. [`kneighbors`] and its
/// kin by `Euclidean`, `SqEuclidean`, `Cosine`, `Correlation` and `Dot` multiply matrices, then
/// evaluate the nearest candidates directly, in a fixed order. The neighbors are
/// those of direct evaluation of all pairs, for any batches. Other metrics, forced routines, radius
/// searches and filters per query convert the rows to a [`Csr`] once, as sparse queries of
/// [`AnySamples`](super::AnySamples) do.
///
/// Queries whose candidates rounding cannot separate from other rows are searched again among 8
/// times as many, at last all: near ties, duplicates beyond about k + 16, and rows with NaN,
/// infinities or elements above 2^50. At worst, each pair is evaluated directly. The host reads a
/// flag per query after each pass. The search keeps a copy of the index for products, two by
/// angles, and one in f32 of 16-bit rows.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::distance::{Metric, NearestNeighbors};
///
/// let device = Device::flex();
/// let x = Tensor::<2>::from_data([[1.0, 0.5], [0.5, 4.0], [4.0, 4.5]], &device);
/// let index = NearestNeighbors::fit(x, Metric::Euclidean);
/// let query = Tensor::<2>::from_data([[1.0, 4.5]], &device);
/// let (distances, indices) = index.kneighbors(Some(&query), 2).unwrap();
/// distances.into_data().assert_eq(&TensorData::from([[0.5_f32.sqrt(), 3.0]]), false);
/// indices.into_data().assert_eq(&TensorData::from([[1, 2]]), false);
/// ```
///
/// [`kneighbors`]: NearestNeighbors::kneighbors
#[derive(Clone)]
pub struct NearestNeighbors<S: Samples = Csr> {
    pub(super) index: S,
    pub(super) measure: Measure,
    pub(super) query_batch: Option<usize>,
    pub(super) index_batch: Option<usize>,
    pub(super) prepared: Arc<S::Prepared>,
}

/// Distances and indices.
pub(super) type Nearest = (Tensor<2>, Tensor<2, Int>);
