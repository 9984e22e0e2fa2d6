//! Errors as Python exceptions.

use std::fmt::Display;

use pyo3::{
    PyErr,
    exceptions::{PyMemoryError, PyRuntimeError, PyTypeError, PyValueError},
};
use sparsek::{
    distance::{DistanceError, UnknownMetric},
    io::memory::MemoryError,
    sparse::{CsrError, PatternError},
    topk::TopkError,
};

/// Why a request failed, by the exception that it becomes.
#[derive(Debug)]
pub enum Failure {
    /// `ValueError`: a size, option or name.
    Value(String),
    /// `TypeError`: a dtype.
    Type(String),
    /// `MemoryError`: more than the limit.
    Memory(String),
    /// `RuntimeError`: a device or driver.
    Runtime(String),
}

impl Failure {
    /// A `ValueError`.
    pub fn value(reason: impl Display) -> Self {
        Self::Value(reason.to_string())
    }

    /// A `RuntimeError`.
    pub fn runtime(reason: impl Display) -> Self {
        Self::Runtime(reason.to_string())
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Value(reason) => PyValueError::new_err(reason),
            Failure::Type(reason) => PyTypeError::new_err(reason),
            Failure::Memory(reason) => PyMemoryError::new_err(reason),
            Failure::Runtime(reason) => PyRuntimeError::new_err(reason),
        }
    }
}

impl From<CsrError> for Failure {
    fn from(error: CsrError) -> Self {
        match error {
            CsrError::Dtype { .. } | CsrError::Dtypes { .. } => Self::Type(error.to_string()),
            other => Self::value(other),
        }
    }
}

impl From<PatternError> for Failure {
    fn from(error: PatternError) -> Self {
        Self::value(error)
    }
}

impl From<DistanceError> for Failure {
    fn from(error: DistanceError) -> Self {
        match error {
            DistanceError::Csr(error) => error.into(),
            DistanceError::Dtypes { .. } => Self::Type(error.to_string()),
            other => Self::value(other),
        }
    }
}

impl From<UnknownMetric> for Failure {
    fn from(error: UnknownMetric) -> Self {
        Self::value(error)
    }
}

impl From<MemoryError> for Failure {
    fn from(error: MemoryError) -> Self {
        match error {
            MemoryError::TooMuch { .. } => Self::Memory(error.to_string()),
            other => Self::value(other),
        }
    }
}

impl From<TopkError> for Failure {
    fn from(error: TopkError) -> Self {
        match error {
            TopkError::Dtype { .. } | TopkError::DtypeOnDevice { .. } => {
                Self::Type(error.to_string())
            }
            TopkError::Kernel(error) => Self::runtime(error),
            other => Self::value(other),
        }
    }
}
