use burn::tensor::{AsIndex, Int, Tensor, kind::Ordered};
use sparsek_kernels::topk::TopkOptions;

use super::{
    error::TopkError,
    request::{LongRows, check},
};
use crate::ops::TopkSpec;

/// Choice among equal elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum TieBreak {
    /// Lowest index.
    #[default]
    Lowest,
    /// Highest index.
    Highest,
}

/// [`TopkOptions`] with a tie rule.
///
/// For [`topk`](super::topk), [`argtopk`](super::argtopk) and masks of whole rows. `&TopkOptions`
/// converts with [`TieBreak::Lowest`], the rule of other selections.
///
/// # Guarantees
///
/// [`TieBreak::Highest`] selects as from reversed rows. Output stays in index order; sorted, equal
/// values list the highest index first. Approximate methods take the last elements above their
/// bound.
///
/// # Cost
///
/// [`TieBreak::Highest`] adds passes over rows (one, or two for [`topk_mask`](super::topk_mask))
/// and selected elements.
///
/// ```
/// use burn::tensor::{Device, Tensor, TensorData};
/// use sparsek::topk::{RowOptions, TieBreak, TopkOptions, topk};
///
/// let x = Tensor::<1>::from_data([4.0, 9.0, 4.0, 1.0, 4.0], &Device::flex());
/// let last = RowOptions::new(TopkOptions::new(3)).with_tie_break(TieBreak::Highest);
/// let (values, indices) = topk(x, last, 0);
/// values.into_data().assert_eq(&TensorData::from([9.0, 4.0, 4.0]), false);
/// indices.into_data().assert_eq(&TensorData::from([1, 2, 4]), false);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RowOptions {
    /// Selection per row.
    pub options: TopkOptions,
    /// Tie rule. Default: [`TieBreak::Lowest`].
    pub tie_break: TieBreak,
}

impl RowOptions {
    /// Uses [`TieBreak::Lowest`].
    pub fn new(options: TopkOptions) -> Self {
        Self { options, tie_break: TieBreak::Lowest }
    }

    /// Sets [`tie_break`](Self::tie_break).
    pub fn with_tie_break(self, tie_break: TieBreak) -> Self {
        Self { tie_break, ..self }
    }
}

// Not by value: Clippy would reject references in calls.
impl From<&TopkOptions> for RowOptions {
    fn from(options: &TopkOptions) -> Self {
        Self::new(*options)
    }
}

pub(super) struct Ties {
    /// Non-negative dimension.
    pub dim: usize,
    /// Last index of reversed rows.
    last: Option<i64>,
    sorted: bool,
}

impl Ties {
    /// Reverses rows, both ways.
    pub fn rows<const D: usize, K: Ordered>(&self, x: Tensor<D, K>) -> Tensor<D, K> {
        match self.last {
            Some(_) => x.flip([self.dim]),
            None => x,
        }
    }

    /// Reverses unsorted results back.
    pub fn selected<const D: usize, K: Ordered>(&self, selected: Tensor<D, K>) -> Tensor<D, K> {
        if self.sorted { selected } else { self.rows(selected) }
    }

    /// Maps indices to `x`.
    pub fn indices<const D: usize>(&self, indices: Tensor<D, Int>) -> Tensor<D, Int> {
        match self.last {
            Some(last) => self.selected(indices.full_like(last) - indices),
            None => indices,
        }
    }
}

pub(super) fn check_rows<const D: usize, K: Ordered>(
    x: &Tensor<D, K>,
    options: impl Into<RowOptions>,
    dim: impl AsIndex,
) -> Result<(Ties, TopkSpec), TopkError> {
    let RowOptions { options, tie_break } = options.into();
    let (dim, spec) = check(x, &options, dim, LongRows::One)?;
    let shape = x.dims();
    // Empty tensors have no ties.
    let reverses = tie_break == TieBreak::Highest && options.k > 0 && !shape.contains(&0);
    let last = reverses.then(|| shape[dim] as i64 - 1);
    Ok((Ties { dim, last, sorted: options.sorted }, spec))
}
