//! Errors of models.
use sparsek::io::{memory::MemoryError, text::excerpt};

/// Why a model configuration is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// k exceeds the row width.
    #[error("k = {k} exceeds the row width {width}")]
    KAboveWidth {
        /// Elements to keep.
        k: usize,
        /// Elements of a row.
        width: usize,
    },
    /// A size is zero.
    #[error("{name} must be at least 1")]
    Zero {
        /// What is zero.
        name: &'static str,
    },
    /// The dropout probability is not in [0, 1).
    #[error("dropout {dropout} is not in [0, 1)")]
    Dropout {
        /// Probability asked for.
        dropout: f64,
    },
    /// The selection method is unknown or its parameter out of range.
    #[error(
        "top-k method `{}` must be exact, early:ITERATIONS or precision:EPSILON (above 0)",
        excerpt(text)
    )]
    Method {
        /// What was asked for.
        text: String,
    },
    /// The text names no activation.
    #[error("activation `{}` must be relu or maxk:K:METHOD", excerpt(text))]
    Activation {
        /// What was asked for.
        text: String,
    },
    /// The parameters and their training state exceed the limit of [`sparsek::io::memory`].
    #[error(transparent)]
    Memory(#[from] MemoryError),
}
