//! The MaxK nonlinearity.
use std::{fmt, str::FromStr};

use burn::{module::Module, tensor::Tensor, tensor::activation::relu};
use serde::{Deserialize, Serialize};
use sparsek::{
    sparse::{Compressed, sparse_topk},
    topk::{Method, TopkOptions, topk_mask},
};

use super::ModelError;

/// Configuration of a [`MaxK`] layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MaxKConfig {
    /// Elements kept per row.
    pub k: usize,
    /// How they are found. Default: exact.
    pub method: Method,
}

impl MaxKConfig {
    /// Keeps the k greatest elements of each row, exactly.
    pub fn new(k: usize) -> Self {
        Self {
            k,
            method: Method::Exact,
        }
    }

    /// Sets the method of selection.
    pub fn with_method(self, method: Method) -> Self {
        Self { method, ..self }
    }

    /// Initialises the layer, which has no parameters.
    pub fn init(&self) -> MaxK {
        MaxK { config: *self }
    }
}

/// MaxK: the k greatest elements of each row keep their value, the others become zero.
///
/// `y[i] = x[i] if i ∈ topk(x) else 0`, along the last dimension. The gradient passes at the kept elements only. Ties
/// go to the lowest index, as in [`sparsek::topk`].
///
/// Peng et al., *MaxK-GNN: Extremely Fast GPU Kernel Design for Accelerating Graph Neural Networks Training*,
/// ASPLOS 2024.
///
/// ```
/// # #[cfg(feature = "flex")] {
/// use burn::tensor::{Device, Tensor};
/// use sparsek_gnn::nn::MaxKConfig;
///
/// let x = Tensor::<2>::from_floats([[1.0, -3.0, 2.0], [-1.0, -2.0, -3.0]], &Device::flex());
/// let y = MaxKConfig::new(1).init().forward(x).try_into_vec_as::<f32>().unwrap();
/// assert_eq!(y, [0.0, 0.0, 2.0, -1.0, 0.0, 0.0]);
/// # }
/// ```
#[derive(Module, Debug)]
pub struct MaxK {
    #[module(skip)]
    config: MaxKConfig,
}

impl MaxK {
    /// Applies the nonlinearity along the last dimension. Shapes: [.., width] → [.., width].
    ///
    /// # Panics
    /// When k is larger than the last dimension.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        topk_mask(
            x,
            &TopkOptions::new(self.config.k).with_method(self.config.method),
        )
    }
}

impl MaxK {
    /// The kept elements alone, without a dense result. Shapes: [rows, width] → [rows, k] and their columns.
    ///
    /// # Panics
    /// When k is larger than the width.
    pub fn compress(&self, x: Tensor<2>) -> Compressed {
        sparse_topk(x, self.config.k, self.config.method)
    }
}

/// The nonlinearity between layers; written `relu` or `maxk:K:METHOD` in configurations.
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
    /// The k greatest elements of each row.
    MaxK {
        /// Elements kept per row.
        k: usize,
        /// How they are found.
        method: Method,
    },
    /// max(x, 0).
    Relu,
}

impl Activation {
    /// MaxK with the exact method.
    pub fn maxk(k: usize) -> Self {
        Self::MaxK {
            k,
            method: Method::Exact,
        }
    }

    /// Checks the activation against the width of the rows it will see.
    ///
    /// # Errors
    /// [`ModelError`] when k is 0 or above the width, or the method has a bad parameter.
    pub fn validate(&self, width: usize) -> Result<(), ModelError> {
        match *self {
            Self::MaxK { k: 0, .. } => Err(ModelError::Zero { name: "k" }),
            Self::MaxK { k, .. } if k > width => Err(ModelError::KAboveWidth { k, width }),
            Self::MaxK { method, .. } => method_from_str(&method_to_string(method)).map(|_| ()),
            Self::Relu => Ok(()),
        }
    }

    /// Applies the activation along the last dimension. Shapes: [.., width] → [.., width].
    ///
    /// # Panics
    /// When k is larger than the last dimension.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        match *self {
            Self::MaxK { k, method } => MaxKConfig::new(k).with_method(method).init().forward(x),
            Self::Relu => relu(x),
        }
    }
}

impl fmt::Display for Activation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MaxK { k, method } => write!(f, "maxk:{k}:{}", method_to_string(*method)),
            Self::Relu => f.write_str("relu"),
        }
    }
}

impl FromStr for Activation {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Self, ModelError> {
        if text == "relu" {
            return Ok(Self::Relu);
        }
        let bad = || ModelError::Activation {
            text: text.to_string(),
        };
        let (k, method) = text
            .strip_prefix("maxk:")
            .and_then(|rest| rest.split_once(':'))
            .ok_or_else(bad)?;
        Ok(Self::MaxK {
            k: k.parse().map_err(|_| bad())?,
            method: method_from_str(method)?,
        })
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

/// Reads a method of selection: `exact`, `early:ITERATIONS` or `precision:EPSILON`.
///
/// # Errors
/// [`ModelError::Method`] for any other text, and for an epsilon that is not positive and finite.
///
/// ```
/// use sparsek::topk::Method;
/// use sparsek_gnn::nn::method_from_str;
///
/// assert_eq!(method_from_str("early:4"), Ok(Method::EarlyStop(4)));
/// assert!(method_from_str("precision:-1").is_err());
/// ```
pub fn method_from_str(text: &str) -> Result<Method, ModelError> {
    let bad = || ModelError::Method {
        text: text.to_string(),
    };
    match text.split_once(':') {
        None if text == "exact" => Ok(Method::Exact),
        Some(("early", n)) => n.parse().map(Method::EarlyStop).map_err(|_| bad()),
        Some(("precision", eps)) => match eps.parse::<f32>() {
            Ok(eps) if eps > 0.0 && eps.is_finite() => Ok(Method::Precision(eps)),
            _ => Err(bad()),
        },
        _ => Err(bad()),
    }
}

/// Writes a method as [`method_from_str`] reads it.
pub fn method_to_string(method: Method) -> String {
    match method {
        Method::Exact => "exact".to_string(),
        Method::EarlyStop(n) => format!("early:{n}"),
        Method::Precision(eps) => format!("precision:{eps}"),
    }
}
