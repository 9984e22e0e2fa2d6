//! Options.

/// How the members of a row are found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Method {
    /// The k greatest (or least) elements, ties to the lowest index.
    #[default]
    Exact,
    /// RTop-K's Algorithm 1: bisection until exactly k elements reach the threshold or the interval
    /// is at most `eps` of its greater end wide.
    Precision(f32),
    /// RTop-K's Algorithm 2: `max_iter` halvings of the interval, then the first k elements at or
    /// above its lower end. Once no value lies between its ends the interval stays as it is, so any
    /// greater number selects the same elements in the same time.
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
    /// Elements kept per row.
    pub k: usize,
    /// The greatest elements if true, else the least.
    pub largest: bool,
    /// RowOutput ordered by value (best first), then by index; otherwise by index.
    pub sorted: bool,
    /// How the members are found.
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

/// [`Method`] without its parameters, which stay out of the compile key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum MethodKind {
    Exact,
    Precision,
    EarlyStop,
}

/// The part of the options that a kernel is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SearchConfig {
    pub method: MethodKind,
    pub largest: bool,
}
