//! Options of the top-k of one vector.

use super::tuning::Tuning;
use crate::{error::KernelError, topk::options::TopkOptions};

/// Length of the subranges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Subrange {
    /// By Rule 4, or `Whole` where faster.
    #[default]
    Auto,
    /// 2^α elements.
    Exponent(u32),
    /// No delegates.
    Whole,
}

/// Algorithm of the first and second top-k.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Selection {
    /// `Rows` for short inputs, else `Bucket`.
    #[default]
    Auto,
    /// Row routines, in one launch.
    Rows,
    /// Histograms of digits.
    Radix,
    /// Histograms of equal ranges of keys.
    Bucket,
    /// Bitonic sorting, for small k.
    Bitonic,
}

impl Selection {
    /// All selections.
    pub const ALL: [Self; 5] = [Self::Auto, Self::Rows, Self::Radix, Self::Bucket, Self::Bitonic];

    /// Name in commands.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Rows => "rows",
            Self::Radix => "radix",
            Self::Bucket => "bucket",
            Self::Bitonic => "bitonic",
        }
    }
}

/// Rule 2: the second top-k skips elements below the least selected delegate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Filter {
    /// Where it saves time.
    #[default]
    Auto,
    /// Always; an error if impossible.
    On,
    /// Never.
    Off,
}

/// Construction of the delegate vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Construction {
    /// Units of a plane share a subrange; without planes, one unit each.
    #[default]
    Planes,
    /// Through shared memory, up to 2^5 elements (Section 5.3).
    Staged,
}

/// How one cube obtains the k best delegates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Finish {
    /// First that can run and saves time.
    #[default]
    Auto,
    /// The last cube of the construction holds all: one launch.
    SingleLaunch,
    /// Selects groups of subranges, then among their delegates.
    Groups,
    /// In registers, or selected by another launch.
    SeparateLaunch,
}

impl Finish {
    /// All finishes.
    pub const ALL: [Self; 4] = [Self::Auto, Self::SingleLaunch, Self::Groups, Self::SeparateLaunch];

    /// Name in commands.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::SingleLaunch => "single-launch",
            Self::Groups => "groups",
            Self::SeparateLaunch => "separate-launch",
        }
    }
}

/// What to select from a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct VectorOptions {
    /// Elements kept.
    pub k: usize,
    /// Greatest elements if true, else least.
    pub largest: bool,
    /// Orders by value (best first), then index; else by index.
    pub sorted: bool,
    /// How to select; does not change results.
    pub strategy: VectorStrategy,
}

impl VectorOptions {
    /// k greatest in index order.
    pub fn new(k: usize) -> Self {
        Self { k, largest: true, sorted: false, strategy: VectorStrategy::default() }
    }

    /// Sets [`largest`](Self::largest).
    pub fn with_largest(self, largest: bool) -> Self {
        Self { largest, ..self }
    }

    /// Sets [`sorted`](Self::sorted).
    pub fn with_sorted(self, sorted: bool) -> Self {
        Self { sorted, ..self }
    }

    /// Sets [`strategy`](Self::strategy).
    pub fn with_strategy(self, strategy: VectorStrategy) -> Self {
        Self { strategy, ..self }
    }

    /// The same selection as an exact one from a row.
    pub fn row_options(&self) -> TopkOptions {
        TopkOptions::new(self.k).with_largest(self.largest).with_sorted(self.sorted)
    }

    /// Checks a selection from `length` elements, at most `longest`; not whether the device can run
    /// the strategy.
    ///
    /// # Errors
    ///
    /// As [`TopkOptions::validate`], and [`KernelError::Routine`] for other than 1 to 4 delegates.
    pub fn validate(&self, length: usize, longest: usize) -> Result<(), KernelError> {
        self.row_options().validate(1, length, longest)?;
        let delegates = self.strategy.delegates;
        if !(1..=4).contains(&delegates) {
            let reason = format!("{delegates} per subrange; 1 to 4 are possible");
            return Err(KernelError::Routine { routine: "delegates", reason });
        }
        Ok(())
    }
}

/// How to select; by default the fastest known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct VectorStrategy {
    /// Length of the subranges.
    pub subrange: Subrange,
    /// Delegates β per subrange, 1 to 4, capped at its length. If β > 1, only subranges with all β
    /// among the k best are scanned (Rule 3).
    pub delegates: usize,
    /// Construction of the delegate vector.
    pub construction: Construction,
    /// Algorithm of both selections.
    pub selection: Selection,
    /// Filter by Rule 2.
    pub filter: Filter,
    /// How one cube obtains the best delegates; an error if impossible.
    pub finish: Finish,
    /// Thresholds of automatic choices.
    pub tuning: Tuning,
}

impl Default for VectorStrategy {
    fn default() -> Self {
        Self {
            subrange: Subrange::Auto,
            delegates: 1,
            construction: Construction::Planes,
            selection: Selection::Auto,
            filter: Filter::Auto,
            finish: Finish::Auto,
            tuning: Tuning::default(),
        }
    }
}
