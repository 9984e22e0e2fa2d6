//! Why a model cannot be built.
use sparsek::io::{memory::MemoryError, text::excerpt};

/// Why a model's configuration was refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The nonlinearity keeps more elements than a row has.
    #[error("k = {k} is larger than the width {width} of the rows it selects from")]
    KAboveWidth {
        /// Elements to keep.
        k: usize,
        /// Elements of a row.
        width: usize,
    },
    /// A size that must be positive is zero.
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
    /// The method of selection has a bad parameter, or none of that name exists.
    #[error(
        "top-k method `{}` is not exact, early:ITERATIONS or precision:EPSILON with EPSILON > 0",
        excerpt(text)
    )]
    Method {
        /// What was asked for.
        text: String,
    },
    /// The text names no activation.
    #[error("activation `{}` is not relu or maxk:K:METHOD", excerpt(text))]
    Activation {
        /// What was asked for.
        text: String,
    },
    /// Its parameters, or what training keeps for them, exceed the memory limit; see
    /// [`sparsek::io::memory`].
    #[error(transparent)]
    Memory(#[from] MemoryError),
}
