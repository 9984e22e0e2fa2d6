//! What a caller asks of a selection from a vector.

use super::tuning::Tuning;

/// How long subranges are.
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

/// How the k best of the delegates, and of the chosen subranges, are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Selection {
    /// As a row where it is short, else by digits.
    #[default]
    Auto,
    /// As a row of [`crate::topk::topk`], in one launch.
    Rows,
    /// By histograms of digits, over many cubes.
    Radix,
    /// By histograms of equal ranges from the least key to the greatest, over many cubes.
    Bucket,
    /// By bitonic sorting of short runs, the better half of each two of which is kept; for few members.
    Bitonic,
}

impl Selection {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Auto,
        Self::Rows,
        Self::Radix,
        Self::Bucket,
        Self::Bitonic,
    ];

    /// Its name on command lines and in records.
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

/// Whether chosen subranges are filtered (Rule 2): of their elements only those that reach the least of their delegates
/// are selected from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Filter {
    /// Where it saves time.
    #[default]
    Auto,
    /// Always; refused where it cannot be.
    On,
    /// Never.
    Off,
}

/// How delegates are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Construction {
    /// By planes, or through shared memory where a GPU has none and subranges are short.
    #[default]
    Auto,
    /// Units of a plane share a subrange; without planes, each has one of its own.
    Planes,
    /// Units read neighbouring loads into shared memory, from which each takes a subrange: up to 2^5 elements.
    Staged,
}

/// How one cube that finishes comes by the best delegates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finish {
    /// By the first of the others that can be and pays.
    #[default]
    Auto,
    /// It is the last of the cubes that find delegates, all of which it holds: one launch.
    AtOnce,
    /// It holds the best delegates of groups of neighbouring subranges, then all those of the best groups.
    Groups,
    /// It holds all delegates, or another selection finds the best ones first.
    Apart,
}

impl Finish {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Auto, Self::AtOnce, Self::Groups, Self::Apart];

    /// Its name on command lines and in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::AtOnce => "at-once",
            Self::Groups => "groups",
            Self::Apart => "apart",
        }
    }
}

/// What to select from a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectorOptions {
    /// Elements kept.
    pub k: usize,
    /// The greatest elements if true, else the least.
    pub largest: bool,
    /// Output ordered by value (best first), then by index; otherwise by index.
    pub sorted: bool,
    /// How long subranges are.
    pub subrange: Subrange,
    /// Delegates of each subrange, β, 1 to 4, or all of its elements where these are fewer: of more than one, only subranges all of whose delegates are among the k
    /// best are looked through (Rule 3).
    pub delegates: usize,
    /// How delegates are found.
    pub construction: Construction,
    /// How delegates and chosen subranges are selected from.
    pub selection: Selection,
    /// Whether chosen subranges are filtered.
    pub filter: Filter,
    /// How a cube that finishes comes by the best delegates; refused where it cannot.
    pub finish: Finish,
    /// What automatic choices go by.
    pub tuning: Tuning,
}

impl VectorOptions {
    /// The k greatest in index order.
    pub fn new(k: usize) -> Self {
        Self {
            k,
            largest: true,
            sorted: false,
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
