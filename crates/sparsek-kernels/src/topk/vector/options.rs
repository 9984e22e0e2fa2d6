//! Options of the top-k of one vector.

use super::tuning::Tuning;

/// Length of the subranges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Subrange {
    /// By Rule 4, or no delegates where they save nothing.
    #[default]
    Auto,
    /// 2^α elements.
    Exponent(u32),
    /// No delegates: one selection from the whole vector.
    Whole,
}

/// Algorithm of the first and the second top-k.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Selection {
    /// `Rows` for short inputs, else `Bucket`.
    #[default]
    Auto,
    /// The row routines of [`crate::topk::topk`], in one launch.
    Rows,
    /// Histograms of digits, over many cubes.
    Radix,
    /// Histograms of equal ranges between the least and the greatest key, over many cubes.
    Bucket,
    /// Sorts short runs and keeps the better half of each two. For small k.
    Bitonic,
}

impl Selection {
    /// All selections.
    pub const ALL: [Self; 5] = [
        Self::Auto,
        Self::Rows,
        Self::Radix,
        Self::Bucket,
        Self::Bitonic,
    ];

    /// Name on command lines and in records.
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

/// Filter by Rule 2: the second top-k sees only elements that reach the least selected delegate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Filter {
    /// Where it saves time.
    #[default]
    Auto,
    /// Always; refused where it cannot run.
    On,
    /// Never.
    Off,
}

/// Construction of the delegate vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Construction {
    /// `Planes`, or `Staged` on a GPU without planes for short subranges.
    #[default]
    Auto,
    /// Units of a plane share a subrange; without planes, each unit has its own.
    Planes,
    /// Units load subranges of up to 2^5 elements through shared memory (Section 5.3).
    Staged,
}

/// How the cube that runs the second top-k obtains the k best delegates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finish {
    /// The first that can run and saves time.
    #[default]
    Auto,
    /// The last cube of the construction holds all delegates in registers: one launch.
    SingleLaunch,
    /// Selects the best groups of neighboring subranges, then among their delegates.
    Groups,
    /// Holds all delegates in registers, or another selection finds the best ones first.
    SeparateLaunch,
}

impl Finish {
    /// All finishes.
    pub const ALL: [Self; 4] = [
        Self::Auto,
        Self::SingleLaunch,
        Self::Groups,
        Self::SeparateLaunch,
    ];

    /// Name on command lines and in records.
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
pub struct VectorOptions {
    /// Elements kept.
    pub k: usize,
    /// Selects the greatest elements if true, else the least.
    pub largest: bool,
    /// Orders the output by value (best first), then by index; otherwise by index.
    pub sorted: bool,
    /// How to select. The result does not depend on it.
    pub strategy: VectorStrategy,
}

impl VectorOptions {
    /// The k greatest in index order.
    pub fn new(k: usize) -> Self {
        Self {
            k,
            largest: true,
            sorted: false,
            strategy: VectorStrategy::default(),
        }
    }
}

/// How to select from a vector; by default the fastest way known for its length and k.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectorStrategy {
    /// Length of the subranges.
    pub subrange: Subrange,
    /// Delegates β of each subrange, 1 to 4, or all elements of a shorter subrange. With more than
    /// one, only subranges with all delegates among the k best are scanned (Rule 3).
    pub delegates: usize,
    /// Construction of the delegate vector.
    pub construction: Construction,
    /// Algorithm of the first and the second top-k.
    pub selection: Selection,
    /// Filter of the selected subranges.
    pub filter: Filter,
    /// How one cube obtains the best delegates; refused where it cannot.
    pub finish: Finish,
    /// Thresholds of the automatic choices.
    pub tuning: Tuning,
}

impl Default for VectorStrategy {
    fn default() -> Self {
        Self {
            subrange: Subrange::Auto,
            delegates: 1,
            construction: Construction::Auto,
            selection: Selection::Auto,
            filter: Filter::Auto,
            finish: Finish::Auto,
            tuning: Tuning::default(),
        }
    }
}
