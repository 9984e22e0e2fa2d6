//! The routines: same contract, different mapping of rows to units. [`ROUTINES`] is the list that the
//! suite iterates.

pub(crate) mod coarse;
mod codes;
pub(crate) mod cube;
pub(crate) mod delegate;
pub(crate) mod guess;
mod halve;
pub(crate) mod halves;
mod held;
pub(crate) mod layout;
pub(crate) mod listing;
mod members;
mod narrow;
pub(crate) mod order;
mod output;
mod pairs;
pub(crate) mod plane;
pub(crate) mod ragged;
mod reached;
mod registers;
mod rough;
mod span;
pub(crate) mod stream;
mod strip;
pub(crate) mod team;
pub(crate) mod unit;

/// How rows are mapped to units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Routine {
    /// One row or several per plane, the rows in registers.
    Plane,
    /// One row per cube, in the registers of all its planes.
    Block,
    /// One plane per row, the row read twice: what reaches the kth of the greatest of subranges is listed.
    Delegate,
    /// One cube per row, the row read once: what reaches a threshold from a sample is listed.
    Stream,
    /// One cube per row, the row read from memory in each pass.
    Cube,
    /// One unit per row, the row read from memory in each pass.
    Unit,
}

/// All routines, in the order in which [`crate::topk::select`] prefers them.
pub const ROUTINES: &[Routine] = &[
    Routine::Plane,
    Routine::Block,
    Routine::Delegate,
    Routine::Stream,
    Routine::Cube,
    Routine::Unit,
];

impl Routine {
    /// Its name on command lines and in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plane => "plane",
            Self::Block => "block",
            Self::Delegate => "delegate",
            Self::Stream => "stream",
            Self::Cube => "cube",
            Self::Unit => "unit",
        }
    }
}
