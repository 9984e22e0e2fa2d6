use burn::tensor::{Int, Tensor, TensorData};

use super::{
    error::DistanceError,
    graphs::{GraphBuilder, GraphMode, graph_of},
    neighbors::without_self,
    types::Nearest,
};
use crate::{
    ops::distance_dtype,
    sparse::{Csr, CsrError, check_size},
    topk::{TopkOptions, topk},
};

/// Nearest neighbors by given distances: scikit-learn's `metric="precomputed"`. 16-bit floats
/// become f32.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::distance::Precomputed;
///
/// let device = Device::flex();
/// let between = [[0.0, 5.0, 1.0], [5.0, 0.0, 6.0], [1.0, 6.0, 0.0]];
/// let index = Precomputed::fit(Tensor::from_data(between, &device)).unwrap();
/// let (distances, indices) = index.kneighbors(None, 1).unwrap();
/// distances.into_data().assert_eq(&TensorData::from([[1.0], [5.0], [1.0]]), false);
/// indices.into_data().assert_eq(&TensorData::from([[2], [0], [0]]), false);
/// ```
#[derive(Clone, Debug)]
pub struct Precomputed {
    distances: Tensor<2>,
}

impl Precomputed {
    /// Takes distances between index rows, `[n, n]`. Error: [`DistanceError::NotSquare`].
    pub fn fit(distances: Tensor<2>) -> Result<Self, DistanceError> {
        match distances.dims() {
            [rows, cols] if rows != cols => Err(DistanceError::NotSquare { rows, cols }),
            _ => Ok(Self { distances: wide(distances) }),
        }
    }

    /// [`NearestNeighbors::kneighbors`](super::NearestNeighbors::kneighbors), differentiable.
    /// `query`: distances to index rows, `[m, n]`.
    pub fn kneighbors(
        &self,
        query: Option<Tensor<2>>,
        k: usize,
    ) -> Result<(Tensor<2>, Tensor<2, Int>), DistanceError> {
        let exclude_self = query.is_none();
        let distances = self.rows(query)?;
        let [_, rows] = distances.dims();
        if k > rows.saturating_sub(usize::from(exclude_self)) {
            return Err(DistanceError::Neighbors { k, rows, exclude_self });
        }
        Ok(match exclude_self && k > 0 {
            true => {
                let (values, indices) = nearest(distances, k + 1);
                without_self(values, indices, 0)
            }
            false => nearest(distances, k),
        })
    }

    /// [`kneighbors_graph_with`](super::NearestNeighbors::kneighbors_graph_with) by given
    /// distances.
    pub fn kneighbors_graph(
        &self,
        query: Option<Tensor<2>>,
        k: usize,
        mode: GraphMode,
    ) -> Result<Csr, DistanceError> {
        let rows = query.as_ref().unwrap_or(&self.distances).dims()[0];
        check_size("entries", rows.saturating_mul(k)).map_err(CsrError::from)?;
        let found = self.kneighbors(query, k)?;
        Ok(mode.apply(graph_of(found, self.distances.dims()[0])?))
    }

    /// [`radius_neighbors_graph`](super::NearestNeighbors::radius_neighbors_graph) by given
    /// distances.
    pub fn radius_neighbors_graph(
        &self,
        query: Option<Tensor<2>>,
        radius: f64,
        mode: GraphMode,
    ) -> Result<Csr, DistanceError> {
        let first = query.is_none().then_some(0);
        let distances = self.rows(query)?;
        let across = distances.dims()[1];
        let (device, dtype) = (distances.device(), distances.dtype());
        let mut graph = GraphBuilder::new(false, radius);
        graph.push(distances, first)?;
        Ok(mode.apply(graph.finish(across, (&device, dtype))?))
    }

    fn rows(&self, query: Option<Tensor<2>>) -> Result<Tensor<2>, DistanceError> {
        let Some(query) = query else {
            return Ok(self.distances.clone());
        };
        let (x, y) = (query.dims()[1], self.distances.dims()[1]);
        match x == y {
            true => Ok(wide(query)),
            false => Err(DistanceError::Columns { x, y }),
        }
    }
}

/// The `k` nearest stored entries per row, both `[rows, k]`: scikit-learn's `precomputed` with a
/// sparse graph.
///
/// Nearest first. Ties go to the lowest column; NaN is last; explicit zeros count. `exclude_self`
/// skips the diagonal. The host sorts. Not differentiable. Error: [`DistanceError::Allowed`].
///
/// ```
/// use burn::tensor::{Device, TensorData};
/// use sparsek::{distance::kneighbors_from_graph, sparse::Csr};
///
/// let graph = b"%%MatrixMarket matrix coordinate real symmetric
/// 3 3 3
/// 1 1 0
/// 2 1 5
/// 3 1 1";
/// let graph = Csr::from_mtx_bytes(graph, &Device::flex()).unwrap();
/// let (distances, indices) = kneighbors_from_graph(&graph, 1, true).unwrap();
/// distances.into_data().assert_eq(&TensorData::from([[1.0], [5.0], [1.0]]), false);
/// indices.into_data().assert_eq(&TensorData::from([[2], [0], [0]]), false);
/// ```
pub fn kneighbors_from_graph(
    graph: &Csr,
    k: usize,
    exclude_self: bool,
) -> Result<(Tensor<2>, Tensor<2, Int>), DistanceError> {
    let pattern = graph.pattern();
    let values: Vec<f64> = graph.values().to_data().iter::<f64>().collect();
    let shortest = (0..graph.rows()).map(|row| pattern.row(row).len()).min().unwrap_or(0);
    let results = graph.rows() * k.min(shortest);
    let (mut distances, mut indices) = (Vec::with_capacity(results), Vec::with_capacity(results));
    let mut row_entries: Vec<(f64, u32)> = Vec::new();
    for row in 0..graph.rows() {
        let first = pattern.indptr()[row] as usize;
        let entries = values[first..].iter().copied().zip(pattern.row(row).iter().copied());
        row_entries.clear();
        row_entries.extend(entries.filter(|&(_, j)| !exclude_self || j as usize != row));
        if k > row_entries.len() {
            return Err(DistanceError::Allowed { k, query: row, allowed: row_entries.len() });
        }
        // Stable, and columns ascend.
        row_entries.sort_by(|(a, _), (b, _)| {
            a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
        });
        distances.extend(row_entries[..k].iter().map(|entry| entry.0));
        indices.extend(row_entries[..k].iter().map(|entry| i64::from(entry.1)));
    }
    let (shape, device) = ([graph.rows(), k], graph.device());
    let distances = TensorData::new(distances, shape);
    let indices = TensorData::new(indices, shape);
    Ok((
        Tensor::from_data(distances, (&device, graph.dtype())),
        Tensor::from_data(indices, &device),
    ))
}

fn nearest(distances: Tensor<2>, k: usize) -> Nearest {
    let options = TopkOptions::new(k).with_largest(false).with_sorted(true);
    topk(distances, &options, 1)
}

fn wide(distances: Tensor<2>) -> Tensor<2> {
    let dtype = distance_dtype(distances.dtype());
    distances.cast(dtype)
}
