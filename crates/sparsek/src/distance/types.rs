use std::{future::Future, ops::Range, sync::Arc};

use burn::tensor::{DType, Device, Int, Tensor};

use super::{error::DistanceError, measure::Measure};
use crate::sparse::{Csr, CsrError};

/// Rows to search or compare: a sparse [`Csr`], or a dense `Tensor<2>` of f32, f64, f16 or bf16.
///
/// Index and queries share a type; [`AnySamples`](super::AnySamples) holds either kind. Sealed.
pub trait Samples: Rows {}

/// Row operations of a search.
pub trait Rows: Clone + Send + Sync + 'static {
    /// Derived from an index once.
    type Prepared: Clone + Default + Send + Sync;

    fn rows(&self) -> usize;
    fn cols(&self) -> usize;
    fn dtype(&self) -> DType;
    fn device(&self) -> Device;
    fn copy_to(&self, device: &Device) -> Result<Self, CsrError>;
    fn slice_rows(&self, rows: Range<usize>) -> Self;
    fn select_rows(&self, rows: &[usize]) -> Self;
    fn to_csr(&self) -> impl Future<Output = Result<Csr, CsrError>>;
    /// Zeros carry a gradient too.
    fn to_tracked_csr(&self) -> Result<Csr, CsrError>;
    /// Converts once.
    fn prepared_csr(
        &self,
        prepared: &Self::Prepared,
    ) -> impl Future<Output = Result<Csr, CsrError>>;
    /// Gives parts the distances of the whole.
    fn measure_of_parts(&self, measure: Measure) -> Measure;
    /// Zeros stay zeros.
    fn scale_cols(&self, factors: Tensor<1>) -> Self;
    fn is_direct(&self, query: &Self, measure: &Measure) -> bool;
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
/// Batches hold ≤ 512 MiB of distances (dense rows: 1 GiB) unless set. They change no bit.
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
/// By `Euclidean`, `SqEuclidean`, `Cosine`, `Correlation` and `Dot`, [`kneighbors`] filters by a
/// matrix product, then evaluates candidates directly: neighbors equal those of all pairs. Other
/// metrics, forced routines, radius searches and filters per query convert the rows to a [`Csr`]
/// once.
///
/// Near ties, many duplicates, NaN, infinities, and elements above 2^50 (f64: 2^400) take more
/// passes, at last over all rows. The host reads a flag per query and pass. The search keeps a copy
/// of the index for products, two by angles, one in f32 of 16-bit rows, and 1/32 for lists.
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

pub(super) type Nearest = (Tensor<2>, Tensor<2, Int>);
