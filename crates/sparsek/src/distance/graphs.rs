//! Neighbours as sparse matrices.

use std::ops::Range;

use burn::tensor::{DType, Element, Tensor, TensorData};

use super::{DistanceError, NearestNeighbors, check, pairwise_distances};
use crate::{
    ops::computed,
    sparse::{Csr, CsrError, Pattern, check_size},
};

impl NearestNeighbors {
    /// The `k` nearest rows of the index as a matrix: row i has an entry for each neighbour of query i, in the neighbour's
    /// column, and its value is the distance. The neighbours are those of [`kneighbors`](NearestNeighbors::kneighbors); without
    /// a query, no row is its own.
    ///
    /// # Shapes and dtypes
    ///
    /// As many rows as queries, as many columns as the index has rows, `k` entries in each row, columns ascending; the values are
    /// of f64 for matrices of f64 and of f32 for all others, and on the device of the index. Distances of 0 are entries too.
    ///
    /// # Errors
    ///
    /// [`DistanceError`] as for [`kneighbors`](NearestNeighbors::kneighbors), and for more than [`MAX_ENTRIES`](crate::sparse::MAX_ENTRIES) neighbours.
    ///
    /// # Cost
    ///
    /// That of `kneighbors`; the indices are read by the host once and sorted there, the distances stay on the device.
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
    /// let graph = index.kneighbors_graph(None, 1).unwrap();
    /// assert_eq!(graph.pattern().indices(), [2, 0, 0]);
    /// graph.values().to_data().assert_eq(&TensorData::from([1.0, 5.0, 1.0]), false);
    /// ```
    pub fn kneighbors_graph(&self, query: Option<&Csr>, k: usize) -> Result<Csr, DistanceError> {
        let rows = query.unwrap_or(&self.index).rows();
        check_size("entries", rows.saturating_mul(k)).map_err(CsrError::from)?;
        let (distances, indices) = self.kneighbors(query, k)?;
        let indptr = (0..=rows).map(|row| (row * k) as u32).collect();
        let indices = indices.into_data();
        let indices = indices.iter::<i64>().map(|row| row as u32).collect();
        let pattern = Pattern::new(rows, self.index.rows(), indptr, indices);
        let pattern = pattern.map_err(CsrError::from)?;
        Ok(Csr::from_unsorted(&pattern, distances.flatten(0, 1))?)
    }

    /// All rows of the index at most `radius` away, as a matrix: row i has an entry for each of those of query i, in its column,
    /// and its value is the distance. For inner products and other measures where larger is nearer, all that are at least
    /// `radius`.
    ///
    /// Queries default to the index itself; then no row is its own neighbour. The radius is rounded to the dtype of the distances
    /// and is itself within. An infinite one takes every distance that is not NaN. NaN is within no radius, and nothing is within
    /// a radius of NaN.
    ///
    /// # Shapes and dtypes
    ///
    /// As many rows as queries, as many columns as the index has rows, columns ascending; the values are of f64 for matrices of
    /// f64 and of f32 for all others, and on the device of the index. Distances of 0 are entries too. Without gradient.
    ///
    /// # Errors
    ///
    /// [`DistanceError`] for matrices of different widths, dtypes or devices, and for more than [`MAX_ENTRIES`](crate::sparse::MAX_ENTRIES) neighbours.
    ///
    /// # Cost
    ///
    /// That of [`pairwise_distances`], a batch of queries at a time: 1 GiB of distances unless a batch is set. All m × n distances
    /// cross to the host once, which selects among them; what is found crosses back.
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
    /// let near = index.radius_neighbors(None, 5.0).unwrap();
    /// assert_eq!(near.pattern().indptr(), [0, 2, 3, 4]);
    /// assert_eq!(near.pattern().indices(), [1, 2, 0, 0]);
    /// near.values().to_data().assert_eq(&TensorData::from([5.0, 1.0, 5.0, 1.0]), false);
    /// ```
    pub fn radius_neighbors(&self, query: Option<&Csr>, radius: f64) -> Result<Csr, DistanceError> {
        match query {
            Some(query) => self.within(query, None, radius),
            None => self.within(&self.index, Some(0), radius),
        }
    }

    /// Neighbours within a radius of some rows of the index, none of which is its own: those rows of what
    /// [`radius_neighbors`](NearestNeighbors::radius_neighbors) gives without a query.
    ///
    /// # Errors
    ///
    /// [`DistanceError::Csr`] for more than [`MAX_ENTRIES`](crate::sparse::MAX_ENTRIES) neighbours.
    ///
    /// # Panics
    ///
    /// If the range ends before it begins or beyond the last row.
    pub fn radius_neighbors_of(
        &self,
        rows: Range<usize>,
        radius: f64,
    ) -> Result<Csr, DistanceError> {
        let first = rows.start;
        self.within(&self.index.slice_rows(rows), Some(first), radius)
    }

    /// Of queries that are rows of the index, `own` is the first.
    fn within(&self, query: &Csr, own: Option<usize>, radius: f64) -> Result<Csr, DistanceError> {
        check(query, &self.index)?;
        match computed(query.dtype()) {
            DType::F64 => self.select(query, own, radius),
            _ => self.select(query, own, radius as f32),
        }
    }

    fn select<T: Element + PartialOrd>(
        &self,
        query: &Csr,
        own: Option<usize>,
        radius: T,
    ) -> Result<Csr, DistanceError> {
        let (rows, across) = (query.rows(), self.index.rows());
        let largest = self.measure.distance.needs().largest;
        let mut found = Found::new();
        for first in (0..rows).step_by(self.batch(across)) {
            let part = first..rows.min(first + self.batch(across));
            let distances = query.slice_rows(part.clone());
            let distances = pairwise_distances(&distances, Some(&self.index), self.measure)?;
            let distances = distances.into_data();
            let distances = distances.as_slice::<T>().expect("the dtype of distances");
            for row in part {
                let start = (row - first) * across;
                let row = own.map(|own| own + row);
                found.push(&distances[start..start + across], |place, distance| {
                    let near = match largest {
                        true => distance >= radius,
                        false => distance <= radius,
                    };
                    near && row != Some(place)
                })?;
            }
        }
        let values = TensorData::new(found.values, [found.indices.len()]);
        let pattern = Pattern::new(rows, across, found.indptr, found.indices);
        let pattern = pattern.map_err(CsrError::from)?;
        let values = Tensor::from_data(values, (&self.index.device(), T::dtype()));
        Ok(Csr::new(pattern, values)?)
    }
}

/// Rows of a sparse matrix, so far.
struct Found<T> {
    indptr: Vec<u32>,
    indices: Vec<u32>,
    values: Vec<T>,
}

impl<T: Copy> Found<T> {
    fn new() -> Self {
        Self {
            indptr: vec![0],
            indices: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Takes what is wanted of a row of distances.
    fn push(&mut self, row: &[T], wanted: impl Fn(usize, T) -> bool) -> Result<(), CsrError> {
        for (place, &distance) in row.iter().enumerate() {
            if wanted(place, distance) {
                self.indices.push(place as u32);
                self.values.push(distance);
            }
        }
        check_size("entries", self.indices.len())?;
        self.indptr.push(self.indices.len() as u32);
        Ok(())
    }
}
