use sparsek::io::{memory::MemoryError, text::excerpt};

/// Invalid model configuration.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// k exceeds the row width.
    #[error("k = {k} exceeds the row width {width}")]
    KAboveWidth {
        /// k.
        k: usize,
        /// Row width.
        width: usize,
    },
    /// Zero size.
    #[error("{name} must be at least 1")]
    Zero {
        /// Name.
        name: &'static str,
    },
    /// Dropout outside [0, 1).
    #[error("dropout {dropout} is not in [0, 1)")]
    Dropout {
        /// Dropout.
        dropout: f64,
    },
    /// Bad method or parameter.
    #[error(
        "top-k method `{}` must be exact, early:ITERATIONS or precision:EPSILON (above 0)",
        excerpt(text)
    )]
    Method {
        /// Text.
        text: String,
    },
    /// Unknown activation.
    #[error("activation `{}` must be relu, elu or maxk:K:METHOD", excerpt(text))]
    Activation {
        /// Text.
        text: String,
    },
    /// Above the [`sparsek::io::memory`] limit.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}
