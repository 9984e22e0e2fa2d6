use std::{fmt, str::FromStr};

use burn::tensor::{Tensor, activation::relu};
use serde::{Deserialize, Serialize};
use sparsek::{nn::MaxKConfig, topk::Method};

use super::error::ModelError;

/// Nonlinearity, written `relu`, `elu` or `maxk:K:METHOD`.
///
/// ```
/// use sparsek_gnn::nn::Activation;
///
/// let text = Activation::maxk(32).to_string();
/// assert_eq!(text, "maxk:32:exact");
/// assert_eq!(text.parse(), Ok(Activation::maxk(32)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Activation {
    /// Keeps each row's k greatest.
    MaxK {
        /// Kept per row.
        k: usize,
        /// Method.
        method: Method,
    },
    /// max(x, 0).
    Relu,
    /// x above 0, else exp(x) - 1.
    Elu,
}

impl Activation {
    /// Exact MaxK.
    pub fn maxk(k: usize) -> Self {
        Self::MaxK { k, method: Method::Exact }
    }

    /// Errors for k outside 1..=width or bad method parameters.
    pub fn validate(&self, width: usize) -> Result<(), ModelError> {
        match *self {
            Self::MaxK { k: 0, .. } => Err(ModelError::Zero { name: "k" }),
            Self::MaxK { k, .. } if k > width => Err(ModelError::KAboveWidth { k, width }),
            Self::MaxK { method, .. } => method_from_str(&method.to_string()).map(|_| ()),
            Self::Relu | Self::Elu => Ok(()),
        }
    }

    /// Applies it; panics for k above the width.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        match *self {
            Self::MaxK { k, method } => MaxKConfig::new(k).with_method(method).init().forward(x),
            Self::Relu => relu(x),
            // Burn's ELU multiplies infinity by 0 above 88.
            Self::Elu => relu(x.clone()) + (x.clamp_max(0.0).exp() - 1.0),
        }
    }
}

impl fmt::Display for Activation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MaxK { k, method } => write!(f, "maxk:{k}:{}", method),
            Self::Relu => f.write_str("relu"),
            Self::Elu => f.write_str("elu"),
        }
    }
}

impl FromStr for Activation {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Self, ModelError> {
        match text {
            "relu" => return Ok(Self::Relu),
            "elu" => return Ok(Self::Elu),
            _ => {}
        }
        let bad = || ModelError::Activation { text: text.to_string() };
        let (k, method) =
            text.strip_prefix("maxk:").and_then(|rest| rest.split_once(':')).ok_or_else(bad)?;
        Ok(Self::MaxK { k: k.parse().map_err(|_| bad())?, method: method_from_str(method)? })
    }
}

impl TryFrom<String> for Activation {
    type Error = ModelError;

    fn try_from(text: String) -> Result<Self, ModelError> {
        text.parse()
    }
}

impl From<Activation> for String {
    fn from(activation: Activation) -> Self {
        activation.to_string()
    }
}

/// Parses `exact`, `early:ITERATIONS` or `precision:EPSILON` (positive, finite).
///
/// ```
/// use sparsek::topk::Method;
/// use sparsek_gnn::nn::method_from_str;
///
/// assert_eq!(method_from_str("early:4"), Ok(Method::EarlyStop(4)));
/// assert!(method_from_str("precision:-1").is_err());
/// ```
pub fn method_from_str(text: &str) -> Result<Method, ModelError> {
    match text.parse() {
        Ok(Method::Precision(eps)) if eps <= 0.0 => None,
        method => method.ok(),
    }
    .ok_or_else(|| ModelError::Method { text: text.to_string() })
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::tensor::Device;
    use rstest::rstest;

    use super::*;
    use crate::fixtures::device;

    #[rstest]
    fn elu_has_finite_gradients(device: Device) {
        let device = device.autodiff();
        let x = Tensor::<1>::from_floats([-1e30, -1.0, 0.0, 2.0, 89.0, 1e30], &device);
        let x = x.require_grad();
        let y = Activation::Elu.forward(x.clone());
        let slopes = x.grad(&y.clone().sum().backward()).unwrap();
        let [y, slopes] = [y.inner(), slopes].map(|t| t.try_into_vec_as::<f32>().unwrap());
        let power = (-1f32).exp();
        for (found, expected) in [
            (y, [-1.0, power - 1.0, 0.0, 2.0, 89.0, 1e30]),
            (slopes, [0.0, power, 1.0, 1.0, 1.0, 1.0]),
        ] {
            let near = |(a, b): (&f32, f32)| (a - b).abs() < 1e-6;
            assert!(found.iter().zip(expected).all(near), "{found:?}");
        }
        assert_eq!("elu".parse(), Ok(Activation::Elu));
    }
}
