use super::{
    error::DistanceError,
    types::{NearestNeighbors, Samples},
};
use crate::sparse::Csr;

/// Neighbors within a radius as host lists, like scikit-learn's.
#[derive(Clone, Debug, PartialEq)]
pub struct RadiusNeighbors {
    offsets: Vec<u32>,
    distances: Vec<f64>,
    indices: Vec<u32>,
}

impl RadiusNeighbors {
    /// Queries.
    pub fn queries(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Distances of a query's neighbors; panics out of bounds.
    pub fn distances(&self, query: usize) -> &[f64] {
        let [start, end] = [query, query + 1].map(|at| self.offsets[at] as usize);
        &self.distances[start..end]
    }

    /// Their index rows; panics likewise.
    pub fn indices(&self, query: usize) -> &[u32] {
        let [start, end] = [query, query + 1].map(|at| self.offsets[at] as usize);
        &self.indices[start..end]
    }

    fn of(graph: &Csr) -> Self {
        let pattern = graph.pattern();
        Self {
            offsets: pattern.indptr().to_vec(),
            distances: graph.values().to_data().iter::<f64>().collect(),
            indices: pattern.indices().to_vec(),
        }
    }

    fn sort(&mut self, largest: bool) {
        let mut order: Vec<(f64, u32)> = Vec::new();
        for ends in self.offsets.windows(2) {
            let entries = ends[0] as usize..ends[1] as usize;
            let (distances, indices) =
                (&mut self.distances[entries.clone()], &mut self.indices[entries]);
            order.clear();
            order.extend(distances.iter().copied().zip(indices.iter().copied()));
            // Stable, so ties keep their order. No radius accepts NaN.
            order.sort_by(|(a, _), (b, _)| match largest {
                true => b.total_cmp(a),
                false => a.total_cmp(b),
            });
            for (slot, &(distance, index)) in order.iter().enumerate() {
                (distances[slot], indices[slot]) = (distance, index);
            }
        }
    }
}

impl<S: Samples> NearestNeighbors<S> {
    /// [`radius_neighbors`](NearestNeighbors::radius_neighbors) as host lists in index order, or if
    /// `sorted`, nearest first, ties by index.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use sparsek::{
    ///     distance::{Metric, NearestNeighbors},
    ///     sparse::Csr,
    /// };
    ///
    /// let x = Tensor::<2>::from_data([[1.0, 0.0], [0.0, 4.0], [2.0, 0.0]], &Device::flex());
    /// let index = NearestNeighbors::fit(Csr::from_dense(x).unwrap(), Metric::Manhattan);
    /// let near = index.radius_neighbors_lists(None, 5.0, true).unwrap();
    /// assert_eq!(near.distances(0), [1.0, 5.0]);
    /// assert_eq!(near.indices(0), [2, 1]);
    /// ```
    pub fn radius_neighbors_lists(
        &self,
        query: Option<&S>,
        radius: f64,
        sorted: bool,
    ) -> Result<RadiusNeighbors, DistanceError> {
        let mut lists = RadiusNeighbors::of(&self.radius_neighbors(query, radius)?);
        if sorted {
            lists.sort(self.measure.distance.algebra().largest);
        }
        Ok(lists)
    }
}
