use burn::{
    backend::{Dispatch, tensor::IntTensor},
    tensor::{AsIndex, DType, Int, IntDType, Tensor, kind::Ordered},
};
use sparsek_kernels::topk::TopkOptions;

use super::{
    error::{TopkError, or_panic},
    masks::masked,
    request::{LongRows, check},
    rows::{pairs, positions},
};
use crate::ops::{Bounds, IndexMap, TopkOps, TopkSpec};

/// Elements per row: the first `lengths`, or `starts..ends`.
///
/// Converts from lengths. Bounds have the rows' shape without `dim` (`[1]` for rank 1); i32, u32 or
/// i64, clamped to 0..=M. Rows with start ≥ end are empty.
#[derive(Clone, Debug)]
pub struct RowBounds<const L: usize> {
    starts: Option<Tensor<L, Int>>,
    ends: Tensor<L, Int>,
    offsets: Option<Tensor<L, Int>>,
    pages: Option<(Tensor<2, Int>, usize)>,
}

impl<const L: usize> RowBounds<L> {
    /// Limits rows to columns `starts..ends`. Indices count from column 0.
    ///
    /// ```
    /// use burn::tensor::{Device, Int, Tensor, TensorData};
    /// use sparsek::topk::{RowBounds, TopkOptions, topk_ragged};
    ///
    /// let device = Device::flex();
    /// let x = Tensor::<2>::from_data([[9.0, 1.0, 3.0, 7.0], [4.0, 8.0, 2.0, 6.0]], &device);
    /// let starts = Tensor::<1, Int>::from_data([1, 2], &device);
    /// let ends = Tensor::<1, Int>::from_data([3, 3], &device);
    /// let bounds = RowBounds::new(starts, ends);
    /// let (values, indices) = topk_ragged(x, bounds, &TopkOptions::new(2), -1);
    /// values.into_data().assert_eq(&TensorData::from([[1.0, 3.0], [2.0, 0.0]]), false);
    /// indices.into_data().assert_eq(&TensorData::from([[1, 2], [2, -1]]), false);
    /// ```
    pub fn new(starts: Tensor<L, Int>, ends: Tensor<L, Int>) -> Self {
        Self { starts: Some(starts), ends, offsets: None, pages: None }
    }

    /// Adds an offset per row to indices, after pages. Same shape as bounds.
    ///
    /// ```
    /// use burn::tensor::{Device, Int, Tensor, TensorData};
    /// use sparsek::topk::{RowBounds, TopkOptions, argtopk_ragged};
    ///
    /// let device = Device::flex();
    /// let x = Tensor::<2>::from_data([[9.0, 1.0, 3.0], [4.0, 8.0, 2.0]], &device);
    /// let lengths = Tensor::<1, Int>::from_data([3, 1], &device);
    /// let bounds = RowBounds::from(lengths).with_offsets(Tensor::from_data([10, 20], &device));
    /// let indices = argtopk_ragged(x, bounds, &TopkOptions::new(2), -1);
    /// indices.into_data().assert_eq(&TensorData::from([[10, 12], [20, -1]]), false);
    /// ```
    pub fn with_offsets(mut self, offsets: Tensor<L, Int>) -> Self {
        self.offsets = Some(offsets);
        self
    }

    /// Maps indices through a cache's page table: column c of row r becomes
    /// `pages[r, c / size] * size + c % size`. Unused slots stay -1. Pages outside bounds may hold
    /// anything.
    ///
    /// `pages`: `[rows, ≥ ⌈M / size⌉]`, rows as in bounds.
    ///
    /// ```
    /// use burn::tensor::{Device, Int, Tensor, TensorData};
    /// use sparsek::topk::{RowBounds, TopkOptions, argtopk_ragged};
    ///
    /// let device = Device::flex();
    /// let x = Tensor::<2>::from_data([[9.0, 1.0, 3.0, 7.0]], &device);
    /// let lengths = Tensor::<1, Int>::from_data([3], &device);
    /// let bounds = RowBounds::from(lengths).with_pages(Tensor::from_data([[5, 8]], &device), 2);
    /// let indices = argtopk_ragged(x, bounds, &TopkOptions::new(2), -1);
    /// indices.into_data().assert_eq(&TensorData::from([[10, 16]]), false);
    /// ```
    pub fn with_pages(mut self, pages: Tensor<2, Int>, size: usize) -> Self {
        self.pages = Some((pages, size));
        self
    }
}

struct Maps {
    map: IndexMap<Dispatch>,
    page: usize,
    index: DType,
    dim: usize,
}

impl Maps {
    fn new<const D: usize, const L: usize, K: Ordered>(
        x: &Tensor<D, K>,
        bounds: &RowBounds<L>,
        dim: usize,
        spec: &TopkSpec,
    ) -> Result<Option<Self>, TopkError> {
        let (cols, index) = (x.dims()[dim], DType::from(spec.index));
        let rows = bounds.ends.shape().num_elements();
        let check = |name, dtype| match dtype {
            DType::I32 | DType::U32 | DType::I64 => Ok(()),
            dtype => Err(TopkError::BoundsDtype { name, dtype }),
        };
        let mut offsets = None;
        if let Some(tensor) = &bounds.offsets {
            check_shape(x, tensor, "offsets", dim)?;
            check("offsets", tensor.dtype())?;
            offsets = Some(tensor.clone().cast(spec.index).into_dispatch());
        }
        let mut pages = None;
        if let Some((table, size)) = &bounds.pages {
            let (found, size) = (table.dims(), *size);
            let holds = size > 0 && found[0] == rows && found[1] >= cols.div_ceil(size);
            if !holds || size > u32::MAX as usize {
                return Err(TopkError::Pages { found, size, rows, cols });
            }
            check("pages", table.dtype())?;
            pages = Some(table.clone().cast(spec.index).into_dispatch());
        }
        let map = match (pages, offsets) {
            (None, None) => return Ok(None),
            (None, Some(offsets)) => IndexMap::Offsets(offsets),
            (Some(pages), None) => IndexMap::Pages(pages),
            (Some(pages), Some(offsets)) => IndexMap::Both { pages, offsets },
        };
        let page = bounds.pages.as_ref().map_or(1, |(_, size)| *size);
        Ok((rows > 0 && spec.options.k > 0).then_some(Self { map, page, index, dim }))
    }

    fn apply<const D: usize>(self, indices: Tensor<D, Int>) -> Tensor<D, Int> {
        let last = D - 1;
        let rows_first = indices.movedim(self.dim as i32, last as i32);
        let shape = rows_first.dims();
        let flat: Tensor<2, Int> = rows_first.reshape([-1, shape[last] as i64]);
        debug_assert_eq!(flat.dtype(), self.index);
        let mapped = <Dispatch as TopkOps>::remap(flat.into_dispatch(), self.map, self.page);
        let mapped = Tensor::<2, Int>::from_dispatch(mapped);
        mapped.reshape(shape).movedim(last as i32, self.dim as i32)
    }
}

impl<const L: usize> From<Tensor<L, Int>> for RowBounds<L> {
    fn from(lengths: Tensor<L, Int>) -> Self {
        Self { starts: None, ends: lengths, offsets: None, pages: None }
    }
}

/// [`topk`](super::topk) within lengths or [`RowBounds`]. Ignores other elements, even NaN.
///
/// M ≤ [`MAX_COLS`](super::MAX_COLS). Rows of L elements select min(k, L). Unused slots come last:
/// value 0, index -1 (`u32::MAX` for u32), no gradient. Costs a pass over bounds, and one over
/// indices with offsets or pages.
///
/// ```
/// use burn::tensor::{Device, Int, Tensor, TensorData};
/// use sparsek::topk::{TopkOptions, topk_ragged};
///
/// let device = Device::flex();
/// let x = Tensor::<2>::from_data([[1.0, 9.0, 3.0, 7.0], [4.0, f32::NAN, 8.0, 2.0]], &device);
/// let lengths = Tensor::<1, Int>::from_data([3, 1], &device);
/// let (values, indices) = topk_ragged(x, lengths, &TopkOptions::new(2), -1);
/// values.into_data().assert_eq(&TensorData::from([[9.0, 3.0], [4.0, 0.0]]), false);
/// indices.into_data().assert_eq(&TensorData::from([[1, 2], [0, -1]]), false);
/// ```
#[track_caller]
pub fn topk_ragged<const D: usize, const L: usize, K: Ordered>(
    x: Tensor<D, K>,
    bounds: impl Into<RowBounds<L>>,
    options: &TopkOptions,
    dim: impl AsIndex,
) -> (Tensor<D, K>, Tensor<D, Int>) {
    or_panic("topk_ragged", try_topk_ragged(x, bounds, options, dim))
}

/// Fallible [`topk_ragged`].
pub fn try_topk_ragged<const D: usize, const L: usize, K: Ordered>(
    x: Tensor<D, K>,
    bounds: impl Into<RowBounds<L>>,
    options: &TopkOptions,
    dim: impl AsIndex,
) -> Result<(Tensor<D, K>, Tensor<D, Int>), TopkError> {
    let (bounds, maps, dim, spec) = prepare(&x, bounds.into(), options, dim)?;
    let (values, indices) = pairs(x, bounds, dim, spec);
    Ok((values, mapped(indices, maps)))
}

/// Indices of [`topk_ragged`].
///
/// ```
/// use burn::tensor::{Device, Int, Tensor, TensorData};
/// use sparsek::topk::{TopkOptions, argtopk_ragged};
///
/// let device = Device::flex();
/// let x = Tensor::<1>::from_data([0.5, -2.0, 3.0], &device);
/// let lengths = Tensor::<1, Int>::from_data([2], &device);
/// let greatest = argtopk_ragged(x, lengths, &TopkOptions::new(1), 0);
/// greatest.into_data().assert_eq(&TensorData::from([0]), false);
/// ```
#[track_caller]
pub fn argtopk_ragged<const D: usize, const L: usize, K: Ordered>(
    x: Tensor<D, K>,
    bounds: impl Into<RowBounds<L>>,
    options: &TopkOptions,
    dim: impl AsIndex,
) -> Tensor<D, Int> {
    or_panic("argtopk_ragged", try_argtopk_ragged(x, bounds, options, dim))
}

/// Fallible [`argtopk_ragged`].
pub fn try_argtopk_ragged<const D: usize, const L: usize, K: Ordered>(
    x: Tensor<D, K>,
    bounds: impl Into<RowBounds<L>>,
    options: &TopkOptions,
    dim: impl AsIndex,
) -> Result<Tensor<D, Int>, TopkError> {
    let (bounds, maps, dim, spec) = prepare(&x, bounds.into(), options, dim)?;
    Ok(mapped(positions(x, bounds, dim, spec), maps))
}

/// [`topk_mask`](super::topk_mask) of what [`topk_ragged`] selects.
///
/// Checks unused offsets and pages too.
///
/// ```
/// use burn::tensor::{Device, Int, Tensor, TensorData};
/// use sparsek::topk::{TopkOptions, topk_mask_ragged};
///
/// let device = Device::flex();
/// let x = Tensor::<2>::from_data([[1.0, 9.0, 3.0, 7.0]], &device);
/// let lengths = Tensor::<1, Int>::from_data([3], &device);
/// let kept = topk_mask_ragged(x, lengths, &TopkOptions::new(2), -1);
/// kept.into_data().assert_eq(&TensorData::from([[0.0, 9.0, 3.0, 0.0]]), false);
/// ```
#[track_caller]
pub fn topk_mask_ragged<const D: usize, const L: usize>(
    x: Tensor<D>,
    bounds: impl Into<RowBounds<L>>,
    options: &TopkOptions,
    dim: impl AsIndex,
) -> Tensor<D> {
    or_panic("topk_mask_ragged", try_topk_mask_ragged(x, bounds, options, dim))
}

/// Fallible [`topk_mask_ragged`].
pub fn try_topk_mask_ragged<const D: usize, const L: usize>(
    x: Tensor<D>,
    bounds: impl Into<RowBounds<L>>,
    options: &TopkOptions,
    dim: impl AsIndex,
) -> Result<Tensor<D>, TopkError> {
    let (bounds, _, dim, spec) = prepare(&x, bounds.into(), options, dim)?;
    Ok(masked(x, bounds, dim, spec))
}

fn mapped<const D: usize>(indices: Tensor<D, Int>, maps: Option<Maps>) -> Tensor<D, Int> {
    match maps {
        Some(maps) => maps.apply(indices),
        None => indices,
    }
}

/// Orders clamped bounds with `dim` last.
fn prepare<const D: usize, const L: usize, K: Ordered>(
    x: &Tensor<D, K>,
    bounds: RowBounds<L>,
    options: &TopkOptions,
    dim: impl AsIndex,
) -> Result<(Bounds<Dispatch>, Option<Maps>, usize, TopkSpec), TopkError> {
    let (dim, spec) = check(x, options, dim, LongRows::Refused)?;
    let maps = Maps::new(x, &bounds, dim, &spec)?;
    let bounds = match bounds {
        RowBounds { starts: None, ends, .. } => {
            let lengths = by_row(x, ends, "lengths", dim)?;
            lengths.map_or(Bounds::Whole, Bounds::Lengths)
        }
        RowBounds { starts: Some(starts), ends, .. } => {
            let starts = by_row(x, starts, "starts", dim)?;
            let ends = by_row(x, ends, "ends", dim)?;
            let both = starts.zip(ends);
            both.map_or(Bounds::Whole, |(starts, ends)| Bounds::Between { starts, ends })
        }
    };
    Ok((bounds, maps, dim, spec))
}

fn check_shape<const D: usize, const L: usize, K: Ordered>(
    x: &Tensor<D, K>,
    bounds: &Tensor<L, Int>,
    name: &'static str,
    dim: usize,
) -> Result<(), TopkError> {
    let mut shape = x.dims();
    shape[dim] = 1;
    let mut expected = shape.to_vec();
    if D > 1 {
        expected.remove(dim);
    }
    let found = bounds.dims().to_vec();
    match found == expected {
        true => Ok(()),
        false => Err(TopkError::Bounds { name, found, expected, dim, shape: x.dims().to_vec() }),
    }
}

/// None without rows.
fn by_row<const D: usize, const L: usize, K: Ordered>(
    x: &Tensor<D, K>,
    bounds: Tensor<L, Int>,
    name: &'static str,
    dim: usize,
) -> Result<Option<IntTensor<Dispatch>>, TopkError> {
    check_shape(x, &bounds, name, dim)?;
    let mut shape = x.dims();
    let cols = shape[dim];
    shape[dim] = 1;
    let dtype = bounds.dtype();
    if !matches!(dtype, DType::I32 | DType::U32 | DType::I64) {
        return Err(TopkError::BoundsDtype { name, dtype });
    }
    if bounds.shape().num_elements() == 0 {
        return Ok(None);
    }
    let clamped = bounds.clamp(0, cols as i64).cast(IntDType::U32);
    Ok(Some(clamped.reshape(shape).swap_dims(dim, D - 1).into_dispatch()))
}
