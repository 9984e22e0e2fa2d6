use burn::tensor::{Tensor, TensorData};
use sparsek_kernels::distance::Metric;

use super::{error::DistanceError, types::Samples};
use crate::ops::distance_dtype;

/// Scales columns so metrics are SciPy's `cdist(x, y, metric, w=weights)`. Scale index and queries
/// alike. Differentiable. Factors:
///
/// - w: `Manhattan`, `BrayCurtis`.
/// - √w: `Euclidean`, `SqEuclidean`, `Cosine`, `Dot`.
/// - w^(1/p): `Minkowski(p)`.
/// - 1 if w > 0, else 0: `Chebyshev`.
///
/// `seuclidean` defaults to `Euclidean` with weights 1 /
/// [`col_variances(1)`](crate::sparse::Csr::col_variances).
///
/// Errors for other metrics, a wrong count, and negative or NaN weights.
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
