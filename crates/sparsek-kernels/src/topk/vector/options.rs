use super::tuning::Tuning;
use crate::{error::KernelError, topk::options::TopkOptions};

/// Subrange length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Subrange {
    /// Rule 4, or `Whole` where faster.
    #[default]
    Auto,
    /// 2^α elements.
    Exponent(u32),
    /// No delegates.
    Whole,
}

/// Algorithm of both selections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Selection {
    /// `Rows` if short, else `Bucket`.
    #[default]
    Auto,
    /// Row routines.
    Rows,
    /// Histograms of digits.
    Radix,
    /// Equal key ranges.
    Bucket,
    /// Bitonic sorts, for small k.
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

/// Rule 2: skips elements below the least selected delegate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Filter {
    /// Where it saves time.
    #[default]
    Auto,
    /// Always; errors if impossible.
    On,
    /// Never.
    Off,
}

/// Delegate construction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Construction {
    /// Units of a plane share a subrange.
    #[default]
    Planes,
    /// Through shared memory, up to 2^5 elements.
    Staged,
}

/// How one cube gets the best delegates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Finish {
    /// First that runs and saves time.
    #[default]
    Auto,
    /// One launch: its last cube holds all.
    SingleLaunch,
    /// Groups of subranges, then their delegates.
    Groups,
    /// In registers, or by another launch.
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

/// Selection from a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct VectorOptions {
    /// Elements kept.
    pub k: usize,
    /// Greatest elements, else least.
    pub largest: bool,
    /// By value, best first, then index; else by index.
    pub sorted: bool,
    /// Algorithm; does not change results.
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

    /// Same exact selection from a row.
    pub fn row_options(&self) -> TopkOptions {
        TopkOptions::new(self.k).with_largest(self.largest).with_sorted(self.sorted)
    }

    /// Checks `length` elements, ≤ `longest`, but not the device.
    ///
    /// Errors as [`TopkOptions::validate`], and [`KernelError::Routine`] unless delegates are 1 to
    /// 4.
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

/// How to select; default: fastest known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct VectorStrategy {
    /// Subrange length.
    pub subrange: Subrange,
    /// β per subrange: 1 to 4, ≤ its length. β > 1 scans only subranges with all β selected
    /// (Rule 3).
    pub delegates: usize,
    /// Delegate construction.
    pub construction: Construction,
    /// Selection algorithm.
    pub selection: Selection,
    /// Rule 2 filter.
    pub filter: Filter,
    /// Finish by one cube; errors if impossible.
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
