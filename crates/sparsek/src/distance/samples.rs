use std::{
    future::{Future, ready},
    ops::Range,
    sync::OnceLock,
};

use burn::tensor::{DType, Device, Int, Tensor, TensorData, kind::Basic};

use super::{
    dense,
    error::DistanceError,
    measure::Measure,
    types::{Nearest, NearestNeighbors, Rows, Samples},
};
use crate::sparse::{Csr, CsrError, check_dtype};

impl Samples for Csr {}
impl Samples for Tensor<2> {}
impl Samples for AnySamples {}

impl Rows for Csr {
    type Prepared = ();

    fn rows(&self) -> usize {
        self.rows()
    }

    fn cols(&self) -> usize {
        self.cols()
    }

    fn dtype(&self) -> DType {
        self.dtype()
    }

    fn device(&self) -> Device {
        self.device()
    }

    fn copy_to(&self, device: &Device) -> Result<Self, CsrError> {
        check_dtype(self.dtype(), device)?;
        self.with_values(through_host(self.values().clone(), device))
    }

    fn slice_rows(&self, rows: Range<usize>) -> Self {
        self.slice_rows(rows)
    }

    fn select_rows(&self, rows: &[usize]) -> Self {
        self.select_rows(rows)
    }

    fn to_csr(&self) -> impl Future<Output = Result<Csr, CsrError>> {
        ready(Ok(self.clone()))
    }

    fn to_tracked_csr(&self) -> Result<Csr, CsrError> {
        Ok(self.clone())
    }

    fn prepared_csr(&self, _prepared: &()) -> impl Future<Output = Result<Csr, CsrError>> {
        ready(Ok(self.clone()))
    }

    fn measure_of_parts(&self, measure: Measure) -> Measure {
        measure.to_parts_of(self)
    }

    fn scale_cols(&self, factors: Tensor<1>) -> Self {
        self.scale_cols(factors)
    }

    fn is_direct(&self, _query: &Self, _measure: &Measure) -> bool {
        true
    }

    fn nearest(
        search: &NearestNeighbors<Self>,
        query: &Self,
        k: usize,
        exclude_self: bool,
    ) -> impl Future<Output = Result<Nearest, DistanceError>> {
        ready(Ok(search.nearest_sparse(query, k, exclude_self)))
    }
}

/// Avoids NCCL, which hangs if threads queue transfers in different orders.
pub(super) fn through_host<const D: usize, K: Basic>(
    x: Tensor<D, K>,
    device: &Device,
) -> Tensor<D, K> {
    if x.device() == *device {
        return x;
    }
    let data = x.try_into_data().expect("the device runs");
    match data.dtype() {
        dtype if dtype.is_float() => Tensor::from_data(data, (device, dtype)),
        // Integers take the device's dtype.
        _ => Tensor::from_data(data, device),
    }
}

/// Derived at first use.
#[derive(Clone, Default)]
pub struct PreparedDense {
    csr: OnceLock<Csr>,
    parts: OnceLock<Vec<dense::Index>>,
}

impl Rows for Tensor<2> {
    type Prepared = PreparedDense;

    fn rows(&self) -> usize {
        self.dims()[0]
    }

    fn cols(&self) -> usize {
        self.dims()[1]
    }

    fn dtype(&self) -> DType {
        self.dtype()
    }

    fn device(&self) -> Device {
        self.device()
    }

    fn copy_to(&self, device: &Device) -> Result<Self, CsrError> {
        check_dtype(self.dtype(), device)?;
        Ok(through_host(self.clone(), device))
    }

    fn slice_rows(&self, rows: Range<usize>) -> Self {
        let all = self.rows();
        assert!(
            rows.start <= rows.end && rows.end <= all,
            "slice_rows: rows {rows:?} of {all} dense rows"
        );
        if rows.is_empty() {
            let none = TensorData::new(Vec::<f32>::new(), [0, self.cols()]);
            return Self::from_data(none, (&self.device(), self.dtype()));
        }
        self.clone().narrow(0, rows.start, rows.len())
    }

    fn select_rows(&self, rows: &[usize]) -> Self {
        if rows.is_empty() {
            return self.slice_rows(0..0);
        }
        let rows: Vec<i64> = rows.iter().map(|&row| row as i64).collect();
        let shape = [rows.len()];
        let rows = Tensor::<1, Int>::from_data(TensorData::new(rows, shape), &self.device());
        self.clone().select(0, rows)
    }

    fn to_csr(&self) -> impl Future<Output = Result<Csr, CsrError>> {
        Csr::from_dense_async(self.clone())
    }

    fn to_tracked_csr(&self) -> Result<Csr, CsrError> {
        Csr::from_all_elements(self.clone())
    }

    async fn prepared_csr(&self, prepared: &PreparedDense) -> Result<Csr, CsrError> {
        if let Some(csr) = prepared.csr.get() {
            return Ok(csr.clone());
        }
        let csr = self.to_csr().await?;
        Ok(prepared.csr.get_or_init(|| csr).clone())
    }

    fn measure_of_parts(&self, measure: Measure) -> Measure {
        measure
    }

    fn scale_cols(&self, factors: Tensor<1>) -> Self {
        let dtype = self.dtype();
        let zeros = self.clone().equal_elem(0.0);
        let scaled = self.clone().cast(factors.dtype()) * factors.unsqueeze();
        // Zeros stay, as in a matrix, even times infinity.
        scaled.mask_fill(zeros, 0.0).cast(dtype)
    }

    fn is_direct(&self, _query: &Self, measure: &Measure) -> bool {
        measure.searches_dense()
    }

    async fn nearest(
        search: &NearestNeighbors<Self>,
        query: &Self,
        k: usize,
        exclude_self: bool,
    ) -> Result<Nearest, DistanceError> {
        check_dtype(query.dtype(), &query.device())?;
        match search.measure.dense_form().filter(|_| query.cols() > 0) {
            Some(form) => {
                let index = &search.index;
                let parts = || dense::parts(index, form, search.index_rows());
                let parts = search.prepared.parts.get_or_init(parts);
                Ok(search.nearest_dense(parts, query, k, exclude_self).await)
            }
            None => {
                let sparse = search.to_sparse().await?;
                let query = query.to_csr().await?;
                Ok(sparse.nearest_sparse(&query, k, exclude_self))
            }
        }
    }
}

/// Sparse or dense rows; either kind can query the other.
///
/// Where kinds meet, dense rows become a [`Csr`], an index once.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::{
///     distance::{AnySamples, Metric, NearestNeighbors, pairwise_distances},
///     sparse::Csr,
/// };
///
/// let device = Device::flex();
/// let x = Tensor::<2>::from_data([[1.0, 0.0], [0.0, 4.0]], &device);
/// let sparse: AnySamples = Csr::from_dense(x).unwrap().into();
/// let dense: AnySamples = Tensor::<2>::from_data([[0.0, 3.0]], &device).into();
/// let index = NearestNeighbors::fit(sparse.clone(), Metric::Manhattan);
/// let (_, indices) = index.kneighbors(Some(&dense), 1).unwrap();
/// indices.into_data().assert_eq(&TensorData::from([[1]]), false);
/// let d = pairwise_distances(&dense, Some(&sparse), Metric::Manhattan).unwrap();
/// d.into_data().assert_eq(&TensorData::from([[4.0, 1.0]]), false);
/// ```
#[allow(clippy::large_enum_variant, reason = "there is one per matrix")]
#[derive(Clone, Debug)]
pub enum AnySamples {
    /// Sparse rows.
    Sparse(Csr),
    /// Dense rows.
    Dense(Tensor<2>),
}

impl From<Csr> for AnySamples {
    fn from(rows: Csr) -> Self {
        Self::Sparse(rows)
    }
}

impl From<Tensor<2>> for AnySamples {
    fn from(rows: Tensor<2>) -> Self {
        Self::Dense(rows)
    }
}

impl AnySamples {
    /// Rows.
    pub fn rows(&self) -> usize {
        match self {
            Self::Sparse(rows) => rows.rows(),
            Self::Dense(rows) => rows.rows(),
        }
    }

    /// Columns.
    pub fn cols(&self) -> usize {
        match self {
            Self::Sparse(rows) => rows.cols(),
            Self::Dense(rows) => rows.cols(),
        }
    }

    /// Value dtype.
    pub fn dtype(&self) -> DType {
        match self {
            Self::Sparse(rows) => rows.dtype(),
            Self::Dense(rows) => rows.dtype(),
        }
    }

    /// Device.
    pub fn device(&self) -> Device {
        match self {
            Self::Sparse(rows) => rows.device(),
            Self::Dense(rows) => rows.device(),
        }
    }

    /// Copies through the host, without gradient. Error: [`CsrError::Dtype`].
    pub fn copy_to(&self, device: &Device) -> Result<Self, CsrError> {
        Ok(match self {
            Self::Sparse(rows) => rows.copy_to(device)?.into(),
            Self::Dense(rows) => rows.copy_to(device)?.into(),
        })
    }

    /// Slices rows. Differentiable. Panics out of bounds.
    pub fn slice_rows(&self, range: Range<usize>) -> Self {
        match self {
            Self::Sparse(rows) => rows.slice_rows(range).into(),
            Self::Dense(rows) => rows.slice_rows(range).into(),
        }
    }
}

impl Rows for AnySamples {
    type Prepared = PreparedDense;

    fn rows(&self) -> usize {
        self.rows()
    }

    fn cols(&self) -> usize {
        self.cols()
    }

    fn dtype(&self) -> DType {
        self.dtype()
    }

    fn device(&self) -> Device {
        self.device()
    }

    fn copy_to(&self, device: &Device) -> Result<Self, CsrError> {
        self.copy_to(device)
    }

    fn slice_rows(&self, rows: Range<usize>) -> Self {
        self.slice_rows(rows)
    }

    fn select_rows(&self, selected: &[usize]) -> Self {
        match self {
            Self::Sparse(rows) => rows.select_rows(selected).into(),
            Self::Dense(rows) => rows.select_rows(selected).into(),
        }
    }

    async fn to_csr(&self) -> Result<Csr, CsrError> {
        match self {
            Self::Sparse(rows) => Ok(rows.clone()),
            Self::Dense(rows) => rows.to_csr().await,
        }
    }

    fn to_tracked_csr(&self) -> Result<Csr, CsrError> {
        match self {
            Self::Sparse(rows) => Ok(rows.clone()),
            Self::Dense(rows) => rows.to_tracked_csr(),
        }
    }

    async fn prepared_csr(&self, prepared: &PreparedDense) -> Result<Csr, CsrError> {
        match self {
            Self::Sparse(rows) => Ok(rows.clone()),
            Self::Dense(rows) => rows.prepared_csr(prepared).await,
        }
    }

    fn measure_of_parts(&self, measure: Measure) -> Measure {
        match self {
            Self::Sparse(rows) => rows.measure_of_parts(measure),
            Self::Dense(rows) => rows.measure_of_parts(measure),
        }
    }

    fn scale_cols(&self, factors: Tensor<1>) -> Self {
        match self {
            Self::Sparse(rows) => rows.scale_cols(factors).into(),
            Self::Dense(rows) => rows.scale_cols(factors).into(),
        }
    }

    fn is_direct(&self, query: &Self, measure: &Measure) -> bool {
        match (self, query) {
            (Self::Sparse(_), Self::Sparse(_)) => true,
            (Self::Dense(index), Self::Dense(query)) => index.is_direct(query, measure),
            _ => false,
        }
    }

    async fn nearest(
        search: &NearestNeighbors<Self>,
        query: &Self,
        k: usize,
        exclude_self: bool,
    ) -> Result<Nearest, DistanceError> {
        if let (Self::Dense(index), Self::Dense(query)) = (&search.index, query) {
            let dense = NearestNeighbors {
                index: index.clone(),
                measure: search.measure,
                query_batch: search.query_batch,
                index_batch: search.index_batch,
                prepared: search.prepared.clone(),
            };
            return <Tensor<2> as Rows>::nearest(&dense, query, k, exclude_self).await;
        }
        let sparse = search.to_sparse().await?;
        let query = query.to_csr().await?;
        Ok(sparse.nearest_sparse(&query, k, exclude_self))
    }
}
