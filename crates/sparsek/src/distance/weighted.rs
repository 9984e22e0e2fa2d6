//! Weights of columns.

use burn::tensor::{Tensor, TensorData};
use sparsek_kernels::distance::Metric;

use super::{error::DistanceError, types::Samples};
use crate::ops::distance_dtype;

/// Scales columns so that a metric of the results is SciPy's `cdist(x, y, metric, w=weights)` of
/// the rows, sparse or dense. Scale index and queries alike.
///
/// | metric | with weights | factor of a column |
/// |---|---|---|
/// | `Manhattan` | Σ w \|x − y\| | w |
/// | `BrayCurtis` | Σ w \|x − y\| / Σ w \|x + y\| | w |
/// | `Euclidean`, `SqEuclidean` | Σ w (x − y)², its root | √w |
/// | `Dot`, `Cosine` | of Σ w x y | √w |
/// | `Minkowski(p)` | (Σ w \|x − y\|^p)^(1/p) | w^(1/p) |
/// | `Chebyshev` | max \|x − y\| where w > 0 | 1 if w > 0, else 0 |
///
/// `seuclidean` with variances V is `Euclidean` with weights 1 / V; those of
/// [`Csr::col_variances`](crate::sparse::Csr::col_variances)`(1)` are scikit-learn's default.
/// Factors and products are rounded to f64 or f32, and to the dtype. Differentiable.
///
/// # Errors
///
/// [`DistanceError`] for other metrics, another number of weights than columns, and weights that
/// are negative or NaN.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::{
///     distance::{Metric, pairwise_distances, weighted},
///     sparse::Csr,
/// };
///
/// let x = Tensor::<2>::from_data([[1.0, 0.0], [0.0, 4.0]], &Device::flex());
/// let x = Csr::from_dense(x).unwrap();
/// let x = weighted(&x, Metric::Manhattan, &[3.0, 0.5]).unwrap();
/// let d = pairwise_distances(&x, None, Metric::Manhattan).unwrap();
/// d.into_data().assert_eq(&TensorData::from([[0.0, 5.0], [5.0, 0.0]]), false);
/// ```
pub fn weighted<S: Samples>(x: &S, metric: Metric, weights: &[f64]) -> Result<S, DistanceError> {
    let factor: &dyn Fn(f64) -> f64 = match metric {
        Metric::Manhattan | Metric::BrayCurtis => &|w| w,
        Metric::Euclidean | Metric::SqEuclidean | Metric::Dot | Metric::Cosine => &f64::sqrt,
        Metric::Minkowski(p) if p.is_finite() && p > 0.0 => &move |w: f64| w.powf(1.0 / p),
        Metric::Minkowski(p) => return Err(DistanceError::Parameter { p }),
        Metric::Chebyshev => &|w| f64::from(w > 0.0),
        metric => return Err(DistanceError::Weights { metric }),
    };
    let (found, expected) = (weights.len(), x.cols());
    if found != expected {
        return Err(DistanceError::Count { what: "weights", found, expected });
    }
    let bad = |weight: &&f64| weight.is_nan() || **weight < 0.0;
    if let Some(column) = weights.iter().position(|weight| bad(&weight)) {
        return Err(DistanceError::Negative { column, weight: weights[column] });
    }
    let factors: Vec<f64> = weights.iter().map(|&weight| factor(weight)).collect();
    let shape = [factors.len()];
    let options = (&x.device(), distance_dtype(x.dtype()));
    let factors = Tensor::from_data(TensorData::new(factors, shape), options);
    Ok(x.scale_cols(factors))
}
