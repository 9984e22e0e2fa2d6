use std::{ops::Range, sync::Arc};

use burn::{
    backend::Dispatch,
    tensor::{Int, Tensor, read_sync},
};

use super::{
    error::DistanceError,
    measure::Measure,
    pairwise::check,
    types::{Nearest, NearestNeighbors, Samples},
};
use crate::{
    ops::{DistanceOps, NearestSpec, distance_dtype},
    sparse::Csr,
    topk::{MAX_COLS, TopkOptions, argtopk, topk},
};

const BATCH_BYTES: usize = 512 << 20;

impl<S: Samples> NearestNeighbors<S> {
    /// Takes the index rows.
    pub fn fit(index: S, measure: impl Into<Measure>) -> Self {
        Self {
            index,
            measure: measure.into(),
            query_batch: None,
            index_batch: None,
            prepared: Arc::default(),
        }
    }

    /// Sets queries per batch.
    pub fn with_query_batch(self, rows: usize) -> Self {
        Self { query_batch: Some(rows.max(1)), ..self }
    }

    /// Sets index rows per batch, ≤ [`MAX_COLS`].
    pub fn with_index_batch(self, rows: usize) -> Self {
        let rows = Some(rows.clamp(1, MAX_COLS));
        Self { index_batch: rows, prepared: Arc::default(), ..self }
    }

    /// Index.
    pub fn index(&self) -> &S {
        &self.index
    }

    /// Distances and indices of the `k` nearest index rows: both `[m, k]`, nearest first; distances
    /// f64 for f64, else f32.
    ///
    /// Ties go to the lowest index. NaN is last, or first if larger is nearer (inner products).
    /// Without a query, index rows query, excluding themselves. Not differentiable.
    ///
    /// Errors if `k` or the parameter is out of range, or widths, dtypes or devices differ.
    pub fn kneighbors(
        &self,
        query: Option<&S>,
        k: usize,
    ) -> Result<(Tensor<2>, Tensor<2, Int>), DistanceError> {
        read_sync(self.kneighbors_async(query, k))
    }

    /// Non-blocking [`kneighbors`](NearestNeighbors::kneighbors), for browsers.
    pub async fn kneighbors_async(
        &self,
        query: Option<&S>,
        k: usize,
    ) -> Result<(Tensor<2>, Tensor<2, Int>), DistanceError> {
        let exclude_self = query.is_none();
        let query = query.unwrap_or(&self.index);
        check(query, &self.index)?;
        self.check_k(k, exclude_self)?;
        S::nearest(self, query, k, exclude_self).await
    }

    /// [`kneighbors`](NearestNeighbors::kneighbors) of a range of index rows, bit for bit. Panics
    /// out of bounds.
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
    /// let (_, indices) = index.kneighbors_of(1..3, 1).unwrap();
    /// indices.into_data().assert_eq(&TensorData::from([[0], [0]]), false);
    /// ```
    pub fn kneighbors_of(
        &self,
        rows: Range<usize>,
        k: usize,
    ) -> Result<(Tensor<2>, Tensor<2, Int>), DistanceError> {
        let query = self.index.slice_rows(rows.clone());
        self.check_k(k, true)?;
        if k == 0 || rows.is_empty() {
            return self.kneighbors(Some(&query), k);
        }
        let (values, indices) = self.kneighbors(Some(&query), k + 1)?;
        Ok(without_self(values, indices, rows.start))
    }

    fn check_k(&self, k: usize, exclude_self: bool) -> Result<(), DistanceError> {
        check_k(&self.measure, self.index.rows(), k, exclude_self)
    }

    pub(super) async fn to_sparse(&self) -> Result<NearestNeighbors, DistanceError> {
        Ok(NearestNeighbors {
            index: self.index.prepared_csr(&self.prepared).await?,
            measure: self.measure,
            query_batch: self.query_batch,
            index_batch: self.index_batch,
            prepared: Arc::default(),
        })
    }

    pub(super) fn index_rows(&self) -> usize {
        self.index_batch.unwrap_or(MAX_COLS)
    }

    pub(super) fn batch(&self, across: usize) -> usize {
        let size = distance_dtype(self.index.dtype()).size();
        let fitting = BATCH_BYTES / (size * across.max(1));
        self.query_batch.unwrap_or(fitting.max(1))
    }

    /// Joins parts in row order, behind their first rows. `exclude_self`: they hold k + 1.
    pub(super) fn join_parts(
        &self,
        parts: impl IntoIterator<Item = (usize, Nearest)>,
        k: usize,
        exclude_self: bool,
    ) -> Nearest {
        let requested = k + usize::from(exclude_self);
        let numbered = parts.into_iter().map(|(first, (values, indices))| {
            let indices = indices.add_scalar(first as i64);
            (values, indices)
        });
        let joined = numbered.reduce(|best, found| self.merge(best, found, requested));
        let (values, indices) = joined.expect("an index has a part");
        match exclude_self {
            true => without_self(values, indices, 0),
            false => (values, indices),
        }
    }

    /// `other` holds later rows.
    fn merge(&self, one: Nearest, other: Nearest, k: usize) -> Nearest {
        let values = Tensor::cat(vec![one.0, other.0], 1);
        let indices = Tensor::cat(vec![one.1, other.1], 1);
        let options = TopkOptions::new(k.min(values.dims()[1]))
            .with_largest(self.measure.distance.algebra().largest)
            .with_sorted(true);
        let (values, at) = topk(values, &options, 1);
        (values, indices.gather(1, at))
    }
}

impl NearestNeighbors {
    pub(super) fn nearest_sparse(&self, query: &Csr, k: usize, exclude_self: bool) -> Nearest {
        let (rows, batch) = (self.index.rows(), self.index_rows());
        if rows <= batch {
            return self.nearest(self.measure, [query, &self.index], k, exclude_self);
        }
        let measure = self.measure.to_parts_of(&self.index);
        let requested = k + usize::from(exclude_self);
        let parts = (0..rows).step_by(batch).map(|first| {
            let part = self.index.slice_rows(first..rows.min(first + batch));
            let most = requested.min(part.rows());
            (first, self.nearest(measure, [query, &part], most, false))
        });
        self.join_parts(parts, k, exclude_self)
    }

    fn nearest(
        &self,
        measure: Measure,
        [x, y]: [&Csr; 2],
        k: usize,
        exclude_self: bool,
    ) -> Nearest {
        let spec = NearestSpec {
            by: measure.spec([x, y], exclude_self),
            k,
            exclude_self,
            batch: self.query_batch,
            index: x.device().settings().int_dtype,
        };
        let (values, indices) = <Dispatch as DistanceOps>::nearest(x.tensors(), y.tensors(), spec);
        (Tensor::from_dispatch(values), Tensor::from_dispatch(indices))
    }
}

pub(super) fn check_k(
    measure: &Measure,
    rows: usize,
    k: usize,
    exclude_self: bool,
) -> Result<(), DistanceError> {
    measure.check()?;
    match k > rows.saturating_sub(usize::from(exclude_self)) {
        true => Err(DistanceError::Neighbors { k, rows, exclude_self }),
        false => Ok(()),
    }
}

/// Removes each row itself, else the last. Query 0 is row `first`.
pub(super) fn without_self(
    values: Tensor<2>,
    indices: Tensor<2, Int>,
    first: usize,
) -> (Tensor<2>, Tensor<2, Int>) {
    let [rows, requested] = indices.dims();
    let numbers = first as i64..(first + rows) as i64;
    let numbers = Tensor::<1, Int>::arange(numbers, &indices.device());
    let numbers = numbers.reshape([rows, 1]).repeat_dim(1, requested);
    let other = indices.clone().not_equal(numbers).int();
    let kept = argtopk(other, &TopkOptions::new(requested - 1), 1);
    (values.gather(1, kept.clone()), indices.gather(1, kept))
}
