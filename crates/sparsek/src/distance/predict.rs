use burn::tensor::{DType, Tensor, TensorData};

use super::{
    error::DistanceError,
    types::{NearestNeighbors, Samples},
};
use crate::{ops::distance_dtype, sparse::Csr};

const DEFAULT_K: usize = 5;

/// Weights of neighbors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Weights {
    /// Equal.
    #[default]
    Uniform,
    /// Inverse distance. Neighbors at distance 0 count alone, infinite and NaN ones never.
    Distance,
}

impl Weights {
    fn apply(self, distances: &mut [f64]) {
        let exact = self == Self::Distance && distances.contains(&0.0);
        for distance in distances {
            *distance = match self {
                Self::Uniform => 1.0,
                Self::Distance if exact => f64::from(*distance == 0.0),
                Self::Distance if distance.is_nan() => 0.0,
                Self::Distance => 1.0 / *distance,
            };
        }
    }
}

#[derive(Clone)]
struct Voters<S: Samples> {
    neighbors: NearestNeighbors<S>,
    k: usize,
    weights: Weights,
}

impl<S: Samples> Voters<S> {
    fn new(
        neighbors: NearestNeighbors<S>,
        what: &'static str,
        found: usize,
    ) -> Result<Self, DistanceError> {
        let expected = neighbors.index().rows();
        match found == expected {
            true => Ok(Self { neighbors, k: DEFAULT_K, weights: Weights::default() }),
            false => Err(DistanceError::Count { what, found, expected }),
        }
    }

    fn of(&self, query: Option<&S>) -> Result<Vec<Vec<(f64, usize)>>, DistanceError> {
        let largest = self.neighbors.measure.distance.algebra().largest;
        if largest && self.weights == Weights::Distance {
            return Err(DistanceError::Similarity);
        }
        if self.k == 0 {
            return Err(DistanceError::NoNeighbors);
        }
        let (distances, indices) = self.neighbors.kneighbors(query, self.k)?;
        let mut weights: Vec<f64> = distances.into_data().iter::<f64>().collect();
        let indices: Vec<i64> = indices.into_data().iter::<i64>().collect();
        let rows = weights.chunks_mut(self.k).zip(indices.chunks(self.k));
        let row = |(weights, indices): (&mut [f64], &[i64])| {
            self.weights.apply(weights);
            let indices = indices.iter().map(|&index| index as usize);
            weights.iter().copied().zip(indices).collect()
        };
        Ok(rows.map(row).collect())
    }
}

/// Votes of the k nearest neighbors: scikit-learn's `KNeighborsClassifier`.
///
/// Equal votes go to the least class. Counts in f64 on the host.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use sparsek::{
///     distance::{KNeighborsClassifier, Metric, NearestNeighbors},
///     sparse::Csr,
/// };
///
/// let device = Device::flex();
/// let x = Tensor::<2>::from_data([[1.0, 0.0], [0.0, 4.0], [2.0, 0.0]], &device);
/// let index = NearestNeighbors::fit(Csr::from_dense(x).unwrap(), Metric::Manhattan);
/// let classifier = KNeighborsClassifier::fit(index, &[7, 3, 7]).unwrap().with_k(1);
/// let query = Tensor::<2>::from_data([[0.0, 3.0], [1.0, 1.0]], &device);
/// let query = Csr::from_dense(query).unwrap();
/// assert_eq!(classifier.predict(Some(&query)).unwrap(), [3, 7]);
/// ```
#[derive(Clone)]
pub struct KNeighborsClassifier<S: Samples = Csr> {
    voters: Voters<S>,
    /// Ascending.
    classes: Vec<i64>,
    /// Positions in `classes`.
    labels: Vec<usize>,
}

impl<S: Samples> KNeighborsClassifier<S> {
    /// Takes a label per index row; k = 5, uniform weights.
    pub fn fit(neighbors: NearestNeighbors<S>, labels: &[i64]) -> Result<Self, DistanceError> {
        let voters = Voters::new(neighbors, "labels", labels.len())?;
        let mut classes = labels.to_vec();
        classes.sort_unstable();
        classes.dedup();
        let place = |label| classes.binary_search(label).expect("each label is a class");
        let labels = labels.iter().map(place).collect();
        Ok(Self { voters, classes, labels })
    }

    /// Sets `k`.
    pub fn with_k(mut self, k: usize) -> Self {
        self.voters.k = k;
        self
    }

    /// Sets the weights.
    pub fn with_weights(mut self, weights: Weights) -> Self {
        self.voters.weights = weights;
        self
    }

    /// All labels, ascending.
    pub fn classes(&self) -> &[i64] {
        &self.classes
    }

    /// Predicts a class per query; without a query, per index row, excluding itself.
    ///
    /// Errors as [`NearestNeighbors::kneighbors`], for k = 0, and for [`Weights::Distance`] of
    /// similarities.
    pub fn predict(&self, query: Option<&S>) -> Result<Vec<i64>, DistanceError> {
        let votes = self.votes(query)?;
        let first = |votes: Vec<f64>| {
            let mut best = 0;
            for (class, &vote) in votes.iter().enumerate() {
                if vote > votes[best] {
                    best = class;
                }
            }
            self.classes[best]
        };
        Ok(votes.map(first).collect())
    }

    /// Vote shares, `[queries, classes]`, f64 for f64, else f32; 0 if no neighbor counts.
    pub fn predict_proba(&self, query: Option<&S>) -> Result<Tensor<2>, DistanceError> {
        let mut shares = Vec::new();
        let mut queries = 0;
        for votes in self.votes(query)? {
            let total: f64 = votes.iter().sum();
            let divisor = if total == 0.0 { 1.0 } else { total };
            shares.extend(votes.iter().map(|vote| vote / divisor));
            queries += 1;
        }
        let index = self.voters.neighbors.index();
        let shares = TensorData::new(shares, [queries, self.classes.len()]);
        Ok(Tensor::from_data(shares, (&index.device(), distance_dtype(index.dtype()))))
    }

    fn votes(
        &self,
        query: Option<&S>,
    ) -> Result<impl Iterator<Item = Vec<f64>> + '_, DistanceError> {
        let voters = self.voters.of(query)?.into_iter();
        Ok(voters.map(|voters| {
            let mut votes = vec![0.0; self.classes.len()];
            voters.iter().for_each(|&(weight, row)| votes[self.labels[row]] += weight);
            votes
        }))
    }
}

/// Means over the k nearest neighbors: scikit-learn's `KNeighborsRegressor`. Computes in f64 on the
/// host.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::{
///     distance::{KNeighborsRegressor, Metric, NearestNeighbors},
///     sparse::Csr,
/// };
///
/// let device = Device::flex();
/// let x = Tensor::<2>::from_data([[1.0, 0.0], [0.0, 4.0], [2.0, 0.0]], &device);
/// let index = NearestNeighbors::fit(Csr::from_dense(x).unwrap(), Metric::Manhattan);
/// let targets = Tensor::<2>::from_data([[10.0], [30.0], [20.0]], &device);
/// let regressor = KNeighborsRegressor::fit(index, targets).unwrap().with_k(2);
/// let mean = regressor.predict(None).unwrap();
/// mean.into_data().assert_eq(&TensorData::from([[25.0], [15.0], [20.0]]), false);
/// ```
#[derive(Clone)]
pub struct KNeighborsRegressor<S: Samples = Csr> {
    voters: Voters<S>,
    targets: Vec<f64>,
    outputs: usize,
    dtype: DType,
}

impl<S: Samples> KNeighborsRegressor<S> {
    /// Takes targets, `[index rows, outputs]`; k = 5, uniform weights.
    pub fn fit(neighbors: NearestNeighbors<S>, targets: Tensor<2>) -> Result<Self, DistanceError> {
        let [rows, outputs] = targets.dims();
        let voters = Voters::new(neighbors, "rows of targets", rows)?;
        let dtype = targets.dtype();
        let targets = targets.into_data().iter::<f64>().collect();
        Ok(Self { voters, targets, outputs, dtype })
    }

    /// Sets `k`.
    pub fn with_k(mut self, k: usize) -> Self {
        self.voters.k = k;
        self
    }

    /// Sets the weights.
    pub fn with_weights(mut self, weights: Weights) -> Self {
        self.voters.weights = weights;
        self
    }

    /// Mean targets, `[queries, outputs]`, in their dtype; NaN if no neighbor counts. Queries and
    /// errors as [`KNeighborsClassifier::predict`]. Not differentiable.
    pub fn predict(&self, query: Option<&S>) -> Result<Tensor<2>, DistanceError> {
        let voters = self.voters.of(query)?;
        let mut means = Vec::with_capacity(voters.len() * self.outputs);
        for voters in &voters {
            let total: f64 = voters.iter().map(|&(weight, _)| weight).sum();
            means.extend((0..self.outputs).map(|output| {
                let terms = voters.iter().map(|&(weight, row)| match weight {
                    // Infinite targets do not count.
                    0.0 => 0.0,
                    weight => weight * self.targets[row * self.outputs + output],
                });
                terms.sum::<f64>() / total
            }));
        }
        let means = TensorData::new(means, [voters.len(), self.outputs]);
        let device = self.voters.neighbors.index().device();
        Ok(Tensor::from_data(means, (&device, self.dtype)))
    }
}
