//! Ties to the highest index: a selection from reversed rows.

use burn::tensor::{AsIndex, Int, Tensor, kind::Ordered};
use sparsek_kernels::topk::TopkOptions;

use super::{
    error::TopkError,
    request::{LongRows, check},
};
use crate::ops::TopkSpec;

/// Which of equal elements are selected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum TieBreak {
    /// Those of the lowest index.
    #[default]
    Lowest,
    /// Those of the highest index.
    Highest,
}

/// [`TopkOptions`], and which of equal elements are selected.
///
/// [`topk`](super::topk), [`argtopk`](super::argtopk) and the masks of whole rows take it. A
/// reference to [`TopkOptions`] means [`TieBreak::Lowest`], which all other selections follow.
///
/// # Guarantees
///
/// [`TieBreak::Highest`] selects as from the reversed row. Output stays in index order; sorted, it
/// lists equal values by highest index first. All NaN are equal, −0 equals +0. Approximate methods
/// take the last elements above their bound instead of the first. Gradients as ever.
///
/// # Cost
///
/// [`TieBreak::Highest`] adds a pass over the rows, two for [`topk_mask`](super::topk_mask), and
/// passes over the selected elements.
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
    /// What to select from each row.
    pub options: TopkOptions,
    /// Which of equal elements. Default: [`TieBreak::Lowest`].
    pub tie_break: TieBreak,
}

impl RowOptions {
    /// Ties go to the lowest index.
    pub fn new(options: TopkOptions) -> Self {
        Self { options, tie_break: TieBreak::Lowest }
    }

    /// Sets [`tie_break`](Self::tie_break).
    pub fn with_tie_break(self, tie_break: TieBreak) -> Self {
        Self { tie_break, ..self }
    }
}

// Not of values: Clippy would refuse the reference in each call.
impl From<&TopkOptions> for RowOptions {
    fn from(options: &TopkOptions) -> Self {
        Self::new(*options)
    }
}

/// How a checked request breaks ties.
pub(super) struct Ties {
    /// Dimension from the front.
    pub dim: usize,
    /// Last index of the rows, if they are reversed.
    last: Option<i64>,
    sorted: bool,
}

impl Ties {
    /// Reverses rows, before the selection and back.
    pub fn rows<const D: usize, K: Ordered>(&self, x: Tensor<D, K>) -> Tensor<D, K> {
        match self.last {
            Some(_) => x.flip([self.dim]),
            None => x,
        }
    }

    /// Restores the order of selected elements.
    pub fn selected<const D: usize, K: Ordered>(&self, selected: Tensor<D, K>) -> Tensor<D, K> {
        if self.sorted { selected } else { self.rows(selected) }
    }

    /// Numbers and orders selected indices as in `x`.
    pub fn indices<const D: usize>(&self, indices: Tensor<D, Int>) -> Tensor<D, Int> {
        match self.last {
            Some(last) => self.selected(indices.full_like(last) - indices),
            None => indices,
        }
    }
}

/// Checks a request for whole rows.
pub(super) fn check_rows<const D: usize, K: Ordered>(
    x: &Tensor<D, K>,
    options: impl Into<RowOptions>,
    dim: impl AsIndex,
) -> Result<(Ties, TopkSpec), TopkError> {
    let RowOptions { options, tie_break } = options.into();
    let (dim, spec) = check(x, &options, dim, LongRows::One)?;
    let shape = x.dims();
    // Without elements there are no ties.
    let reverses = tie_break == TieBreak::Highest && options.k > 0 && !shape.contains(&0);
    let last = reverses.then(|| shape[dim] as i64 - 1);
    Ok((Ties { dim, last, sorted: options.sorted }, spec))
}
