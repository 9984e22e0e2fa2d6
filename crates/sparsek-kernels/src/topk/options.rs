use std::{fmt, str::FromStr};

use super::types::MAX_ROWS;
use crate::error::KernelError;

/// Selection method, in text `exact`, `precision:EPS`, `early:MAX_ITER`.
///
/// ```
/// use sparsek_kernels::topk::Method;
///
/// assert_eq!("early:4".parse(), Ok(Method::EarlyStop(4)));
/// assert_eq!(Method::Precision(0.01).to_string(), "precision:0.01");
/// assert!("precision:-1".parse::<Method>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "String", into = "String"))]
pub enum Method {
    /// Exactly the k best.
    #[default]
    Exact,
    /// RTop-K's Algorithm 1: bisects until k elements reach the threshold, or the interval is
    /// within `eps` times the greatest finite magnitude.
    Precision(f32),
    /// RTop-K's Algorithm 2: halves the interval `max_iter` times, then takes the first k elements
    /// ≥ its lower end.
    EarlyStop(u32),
}

impl Method {
    pub(crate) fn kind(self) -> MethodKind {
        match self {
            Self::Exact => MethodKind::Exact,
            Self::Precision(_) => MethodKind::Precision,
            Self::EarlyStop(_) => MethodKind::EarlyStop,
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact => f.write_str("exact"),
            Self::Precision(eps) => write!(f, "precision:{eps}"),
            Self::EarlyStop(max_iter) => write!(f, "early:{max_iter}"),
        }
    }
}

/// Not a [`Method`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a method: expected exact, early:ITERATIONS or precision:EPSILON, with a \
     finite epsilon of at least 0"
)]
pub struct UnknownMethod {
    /// Text.
    pub text: String,
}

impl FromStr for Method {
    type Err = UnknownMethod;

    fn from_str(text: &str) -> Result<Self, UnknownMethod> {
        let method = match text.split_once(':') {
            None => (text == "exact").then_some(Self::Exact),
            Some(("early", max_iter)) => max_iter.parse().ok().map(Self::EarlyStop),
            Some(("precision", eps)) => {
                let eps = eps.parse().ok();
                let eps = eps.filter(|eps: &f32| *eps >= 0.0 && eps.is_finite());
                eps.map(Self::Precision)
            }
            Some(_) => None,
        };
        method.ok_or_else(|| UnknownMethod { text: text.into() })
    }
}

impl TryFrom<String> for Method {
    type Error = UnknownMethod;

    fn try_from(text: String) -> Result<Self, UnknownMethod> {
        text.parse()
    }
}

impl From<Method> for String {
    fn from(method: Method) -> Self {
        method.to_string()
    }
}

/// Selection per row.
///
/// ```
/// use sparsek_kernels::topk::{Method, TopkOptions};
///
/// let options = TopkOptions::new(2).with_largest(false).with_method(Method::EarlyStop(4));
/// assert!(options.validate(10, 2, usize::MAX).is_ok());
/// let error = options.validate(10, 1, usize::MAX).unwrap_err();
/// assert_eq!(error.to_string(), "k = 2 is greater than the row length 1");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TopkOptions {
    /// Elements per row.
    pub k: usize,
    /// Greatest elements (default), else least.
    pub largest: bool,
    /// By value, best first, then index; else by index (default).
    pub sorted: bool,
    /// Selection method; default [`Method::Exact`].
    pub method: Method,
}

impl TopkOptions {
    /// k greatest, exact, in index order.
    pub fn new(k: usize) -> Self {
        Self { k, largest: true, sorted: false, method: Method::Exact }
    }

    /// Sets [`largest`](Self::largest).
    pub fn with_largest(self, largest: bool) -> Self {
        Self { largest, ..self }
    }

    /// Sets [`sorted`](Self::sorted).
    pub fn with_sorted(self, sorted: bool) -> Self {
        Self { sorted, ..self }
    }

    /// Sets [`method`](Self::method).
    pub fn with_method(self, method: Method) -> Self {
        Self { method, ..self }
    }

    /// Checks `rows` rows of `cols` elements, ≤ `longest`.
    ///
    /// Errors: [`KernelError::KTooLarge`], [`KernelError::RowTooLong`],
    /// [`KernelError::TooManyRows`] or [`KernelError::Precision`].
    pub fn validate(&self, rows: usize, cols: usize, longest: usize) -> Result<(), KernelError> {
        if self.k > cols {
            return Err(KernelError::KTooLarge { k: self.k, cols });
        }
        if cols > longest {
            return Err(KernelError::RowTooLong { cols, limit: longest });
        }
        if rows > MAX_ROWS {
            return Err(KernelError::TooManyRows { rows, limit: MAX_ROWS });
        }
        match self.method {
            Method::Precision(eps) if !(eps.is_finite() && eps >= 0.0) => {
                Err(KernelError::Precision { eps })
            }
            _ => Ok(()),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum MethodKind {
    Exact,
    Precision,
    EarlyStop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SearchConfig {
    pub method: MethodKind,
    pub largest: bool,
}
