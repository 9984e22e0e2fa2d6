//! The nearest rows, by brute force.

use std::ops::Range;

use burn::{
    backend::Dispatch,
    tensor::{Int, Tensor},
};

use super::{DistanceError, Measure, check};
use crate::{
    ops::{DistanceOps, NearestSpec, computed},
    sparse::Csr,
    topk::{MAX_COLS, TopkOptions, argtopk, topk},
};

/// Bytes of distances of which those within a radius are found at a time.
const BATCH_BYTES: usize = 512 << 20;

/// Brute-force nearest neighbours among the rows of a sparse matrix.
///
/// Distances of a batch of queries to all rows of the index are in memory at a time, never the whole matrix: 512 MiB of them, or an
/// eighth of the memory that is free where that is less, unless a batch is set. The index is gone through in parts where counters of
/// its columns would take more than 256 MiB. The result is the same whatever the batches.
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
#[derive(Clone)]
pub struct NearestNeighbors {
    pub(super) index: Csr,
    pub(super) measure: Measure,
    query_batch: Option<usize>,
    pub(super) index_batch: Option<usize>,
}

impl NearestNeighbors {
    /// Takes the rows among which neighbours are found.
    pub fn fit(index: Csr, measure: impl Into<Measure>) -> Self {
        Self {
            index,
            measure: measure.into(),
            query_batch: None,
            index_batch: None,
        }
    }

    /// Sets how many queries are compared at a time.
    pub fn with_query_batch(self, rows: usize) -> Self {
        Self {
            query_batch: Some(rows.max(1)),
            ..self
        }
    }

    /// Sets how many rows of the index are compared at a time, at most [`MAX_COLS`].
    pub fn with_index_batch(self, rows: usize) -> Self {
        Self {
            index_batch: Some(rows.clamp(1, MAX_COLS)),
            ..self
        }
    }

    /// The rows among which neighbours are found.
    pub fn index(&self) -> &Csr {
        &self.index
    }

    /// Distances to the `k` nearest rows of the index and which these are, the nearest first, ties to the lowest index: both
    /// `[m, k]`. Queries default to the index itself; then no row is its own neighbour. For inner products and other measures
    /// where larger is nearer, the largest. NaN comes last, or first where larger is nearer.
    ///
    /// Distances are not differentiable here; those of [`pairwise_distances`](super::pairwise_distances) are.
    ///
    /// # Errors
    ///
    /// [`DistanceError`] for more neighbours than there are rows, and for matrices of different widths, dtypes or devices.
    pub fn kneighbors(
        &self,
        query: Option<&Csr>,
        k: usize,
    ) -> Result<(Tensor<2>, Tensor<2, Int>), DistanceError> {
        let own = query.is_none();
        let query = query.unwrap_or(&self.index);
        check(query, &self.index)?;
        self.check_k(k, own)?;
        let rows = self.index.rows();
        let batch = self.index_batch.unwrap_or(MAX_COLS);
        if rows <= batch {
            return Ok(self.nearest(self.measure, [query, &self.index], k, own));
        }
        let measure = self.measure.to_parts_of(&self.index);
        // The best of the parts of the index so far; the row itself is left out at the end.
        let asked = k + usize::from(own);
        let mut best = None;
        for first in (0..rows).step_by(batch) {
            let part = self.index.slice_rows(first..rows.min(first + batch));
            let most = asked.min(part.rows());
            let (values, places) = self.nearest(measure, [query, &part], most, false);
            let found = (values, places.add_scalar(first as i64));
            best = Some(match best {
                None => found,
                Some(best) => self.best_of(best, found, asked),
            });
        }
        let (values, places) = best.expect("there are more rows than in a part");
        Ok(match own {
            true => without_own(values, places, 0),
            false => (values, places),
        })
    }

    /// Neighbours of some rows of the index, none of which is its own: those rows of what
    /// [`kneighbors`](NearestNeighbors::kneighbors) gives without a query, bit for bit. For a caller that goes through the index
    /// in batches of its own, to show its progress or to write each batch away.
    ///
    /// # Errors
    ///
    /// [`DistanceError::Neighbors`] for more neighbours than there are other rows.
    ///
    /// # Panics
    ///
    /// If the range ends before it begins or beyond the last row.
    ///
    /// # Cost
    ///
    /// What does not depend on the queries is done for each call: O(rows, columns and entries of the index).
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
        let (values, places) = self.kneighbors(Some(&query), k + 1)?;
        Ok(without_own(values, places, rows.start))
    }

    fn check_k(&self, k: usize, own: bool) -> Result<(), DistanceError> {
        self.measure.check()?;
        let rows = self.index.rows();
        match k > rows.saturating_sub(usize::from(own)) {
            true => Err(DistanceError::Neighbors { k, rows, own }),
            false => Ok(()),
        }
    }

    /// Queries whose distances are in memory at a time.
    pub(super) fn batch(&self, across: usize) -> usize {
        let size = computed(self.index.dtype()).size();
        let fitting = BATCH_BYTES / (size * across.max(1));
        self.query_batch.unwrap_or(fitting.max(1))
    }

    /// The best `k` of two lists, the second of later rows.
    fn best_of(&self, one: Found, other: Found, k: usize) -> Found {
        let values = Tensor::cat(vec![one.0, other.0], 1);
        let places = Tensor::cat(vec![one.1, other.1], 1);
        let options = TopkOptions::new(k.min(values.dims()[1]))
            .with_largest(self.measure.distance.needs().largest)
            .with_sorted(true);
        let (values, at) = topk(values, &options);
        (values, places.gather(1, at))
    }

    fn nearest(&self, measure: Measure, [x, y]: [&Csr; 2], k: usize, own: bool) -> Found {
        let spec = NearestSpec {
            by: measure.spec([x, y], own),
            k,
            exclude_self: own,
            batch: self.query_batch,
            index: x.device().settings().int_dtype,
        };
        let (values, indices) = <Dispatch as DistanceOps>::nearest(
            x.indptr().clone().into_dispatch(),
            x.indices().clone().into_dispatch(),
            x.values().clone().into_dispatch(),
            y.indptr().clone().into_dispatch(),
            y.indices().clone().into_dispatch(),
            y.values().clone().into_dispatch(),
            spec,
        );
        (
            Tensor::from_dispatch(values),
            Tensor::from_dispatch(indices),
        )
    }
}

/// Distances and where they are, the nearest first.
type Found = (Tensor<2>, Tensor<2, Int>);

/// All but one of the neighbours of rows from `first` on: without the row itself, else without the last.
fn without_own(
    values: Tensor<2>,
    places: Tensor<2, Int>,
    first: usize,
) -> (Tensor<2>, Tensor<2, Int>) {
    let [rows, asked] = places.dims();
    let numbers = first as i64..(first + rows) as i64;
    let numbers = Tensor::<1, Int>::arange(numbers, &places.device());
    let numbers = numbers.reshape([rows, 1]).repeat_dim(1, asked);
    let other = places.clone().not_equal(numbers).int();
    let kept = argtopk(other, &TopkOptions::new(asked - 1));
    (values.gather(1, kept.clone()), places.gather(1, kept))
}
