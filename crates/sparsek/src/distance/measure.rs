use sparsek_kernels::distance::{DenseForm, Distance, Metric, Routine, inspects_values};
#[cfg(feature = "kernels")]
use sparsek_kernels::distance::{DynMetric, HostSemiring, Semiring};

use super::error::DistanceError;
use crate::{ops::DistanceSpec, sparse::Csr};

/// [`Metric`] or custom semiring.
#[derive(Clone, Copy)]
pub struct Measure {
    pub(super) distance: &'static dyn Distance,
    /// `None` if custom.
    metric: Option<Metric>,
    p: f64,
    routine: Option<Routine>,
    whole: Option<Whole>,
}

/// Of a whole index: all parts use one routine.
#[derive(Clone, Copy)]
struct Whole {
    density: f64,
    longest: usize,
}

impl From<Metric> for Measure {
    fn from(metric: Metric) -> Self {
        Self {
            distance: metric.distance(),
            metric: Some(metric),
            p: metric.p(),
            routine: None,
            whole: None,
        }
    }
}

impl Measure {
    /// Custom semiring, by [`semiring!`](crate::semiring). Needs the feature `kernels`, which
    /// CubeCL runtimes enable.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor, TensorData};
    /// use cubecl::prelude::*;
    /// use sparsek::{
    ///     distance::{Algebra, Measure, Semiring, pairwise_distances},
    ///     semiring,
    ///     sparse::Csr,
    /// };
    ///
    /// /// The best product of all columns that both rows have, or 0 where none is greater.
    /// struct MaxTimes;
    ///
    /// semiring! {
    ///     #[cube]
    ///     impl Semiring for MaxTimes {
    ///         const ALGEBRA: Algebra = Algebra { largest: true, ..Algebra::PRODUCTS };
    ///
    ///         fn reduce<S: Float>(a: S, b: S) -> S {
    ///             max(a, b)
    ///         }
    ///
    ///         fn product<S: Float>(a: S, b: S, _p: S) -> S {
    ///             a * b
    ///         }
    ///     }
    /// }
    ///
    /// let x = Tensor::<2>::from_data([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0]], &Device::flex());
    /// let x = Csr::from_dense(x).unwrap();
    /// let best = pairwise_distances(&x, None, Measure::semiring::<MaxTimes>()).unwrap();
    /// best.into_data().assert_eq(&TensorData::from([[4.0, 6.0], [6.0, 16.0]]), false);
    /// ```
    #[cfg(feature = "kernels")]
    pub fn semiring<M: Semiring + HostSemiring>() -> Self {
        let distance = DynMetric::<M>::of();
        Self { distance, metric: None, p: 0.0, routine: None, whole: None }
    }

    /// Forces a routine; `None` chooses.
    pub fn with_routine(self, routine: Option<Routine>) -> Self {
        Self { routine, ..self }
    }

    /// Whether [`NearestNeighbors`](super::NearestNeighbors) filters dense rows by a matrix
    /// product.
    ///
    /// ```
    /// use sparsek::distance::{Measure, Metric};
    ///
    /// assert!(Measure::from(Metric::Cosine).searches_dense());
    /// assert!(!Measure::from(Metric::Jaccard).searches_dense());
    /// ```
    pub fn searches_dense(&self) -> bool {
        self.dense_form().is_some()
    }

    pub(super) fn metric(&self) -> Option<Metric> {
        self.metric
    }

    pub(super) fn dense_form(&self) -> Option<DenseForm> {
        match self.metric.filter(|_| self.routine.is_none())? {
            Metric::Euclidean => Some(DenseForm::Difference { root: true }),
            Metric::SqEuclidean => Some(DenseForm::Difference { root: false }),
            Metric::Cosine => Some(DenseForm::Angle { centered: false }),
            Metric::Correlation => Some(DenseForm::Angle { centered: true }),
            Metric::Dot => Some(DenseForm::Product),
            _ => None,
        }
    }

    pub(super) fn to_parts_of(self, index: &Csr) -> Self {
        self.greatest([index; 2]);
        Self {
            whole: Some(Whole { density: density(index), longest: index.pattern().longest() }),
            ..self
        }
    }

    pub(super) fn check(&self) -> Result<(), DistanceError> {
        let p = self.p;
        match self.distance.algebra().parameter && !(p.is_finite() && p > 0.0) {
            true => Err(DistanceError::Parameter { p }),
            false => Ok(()),
        }
    }

    pub(super) fn spec(&self, [x, y]: [&Csr; 2], same_matrix: bool) -> DistanceSpec {
        let longest = || y.pattern().longest();
        DistanceSpec {
            distance: self.distance,
            p: self.p,
            cols: x.cols(),
            routine: self.routine,
            density: self.whole.map(|whole| whole.density),
            longest: [
                x.pattern().longest(),
                self.whole.map_or_else(longest, |whole| whole.longest),
            ],
            greatest: self.greatest([x, y]),
            same_matrix,
        }
    }

    fn greatest(&self, [x, y]: [&Csr; 2]) -> [Option<f32>; 2] {
        let density = self.whole.map_or_else(|| density(y), |whole| whole.density);
        let looked_at = match self.routine {
            None => inspects_values(self.distance.strategy().inner, density),
            Some(forced) => forced == Routine::TensorCore,
        };
        [x, y].map(|matrix| looked_at.then(|| matrix.greatest()))
    }
}

fn density(matrix: &Csr) -> f64 {
    let places = matrix.rows().max(1) as f64 * matrix.cols().max(1) as f64;
    matrix.nnz() as f64 / places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unforced_metrics_have_a_form() {
        let metric = Measure::from(Metric::Euclidean);
        assert_eq!(metric.dense_form(), Some(DenseForm::Difference { root: true }));
        assert_eq!(metric.with_routine(Some(Routine::Merge)).dense_form(), None);
        assert_eq!(Measure::from(Metric::Manhattan).dense_form(), None);
    }
}
