//! The options of top-k.

/// How elements are selected.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Method {
    /// The k greatest (or least) elements, ties to the lowest index.
    #[default]
    Exact,
    /// RTop-K's Algorithm 1: bisects until exactly k elements reach the threshold, or the interval
    /// is at most `eps` times its greater end wide.
    Precision(f32),
    /// RTop-K's Algorithm 2: halves the interval `max_iter` times, then takes the first k elements
    /// at or above its lower end. Halving an empty interval changes neither result nor time.
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

/// What to select from each row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopkOptions {
    /// Elements per row.
    pub k: usize,
    /// The greatest, else the least.
    pub largest: bool,
    /// By value (best first), then by index; else in index order.
    pub sorted: bool,
    /// How to find them.
    pub method: Method,
}

impl TopkOptions {
    /// The k greatest, exact, in index order.
    pub fn new(k: usize) -> Self {
        Self {
            k,
            largest: true,
            sorted: false,
            method: Method::Exact,
        }
    }
}

/// [`Method`] for the compile key, without parameters.
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
