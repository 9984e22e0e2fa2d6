#[cfg(feature = "kernels")]
use cubecl::{ir::ElemType, prelude::*, server::Handle};

#[cfg(feature = "kernels")]
use super::row::bounds::RowBoundsLaunch;
#[cfg(feature = "kernels")]
use crate::{error::KernelError, launch::argument};

/// Longest row, exact in f32; beyond: [`crate::topk::topk_vector`].
pub const MAX_COLS: usize = 1 << 24;

/// Selectable dtypes.
pub const SUPPORTED_DTYPES: &str = "f32, f16, bf16, f64, i32, u32, i64";

/// Most rows.
pub const MAX_ROWS: usize = 1 << 31;

/// Strided matrix to select from.
#[cfg(feature = "kernels")]
#[derive(Clone, Debug)]
pub struct Rows {
    /// Begins at the first element.
    pub handle: Handle,
    /// One of [`SUPPORTED_DTYPES`](crate::topk::SUPPORTED_DTYPES).
    pub dtype: ElemType,
    /// Up to [`MAX_ROWS`].
    pub rows: usize,
    /// Up to [`MAX_COLS`]; more for one exact row without gaps.
    pub cols: usize,
    /// Elements between rows.
    pub row_stride: usize,
    /// Elements between columns.
    pub col_stride: usize,
    /// See [`with_bounds`](Self::with_bounds).
    pub starts: Option<Handle>,
    /// See [`with_lengths`](Self::with_lengths).
    pub lengths: Option<Handle>,
}

#[cfg(feature = "kernels")]
impl Rows {
    /// Row-major, without gaps.
    pub fn contiguous(handle: Handle, dtype: ElemType, rows: usize, cols: usize) -> Self {
        Self {
            handle,
            dtype,
            rows,
            cols,
            row_stride: cols,
            col_stride: 1,
            starts: None,
            lengths: None,
        }
    }

    /// Limits row r to its first `lengths[r]` elements, a u32 cut to `cols`.
    ///
    /// Rows shorter than k are selected whole; empty slots come last, with value zero and all index
    /// bits set (-1, or `u32::MAX`).
    pub fn with_lengths(self, lengths: Handle) -> Self {
        Self { starts: None, lengths: Some(lengths), ..self }
    }

    /// Limits row r to columns `starts[r]..ends[r]`, as [`with_lengths`](Self::with_lengths).
    /// Indices count from column 0. Rows in registers load elements, not vectors.
    pub fn with_bounds(self, starts: Handle, ends: Handle) -> Self {
        Self { starts: Some(starts), lengths: Some(ends), ..self }
    }

    pub(crate) fn bounds_argument(&self) -> Result<RowBoundsLaunch, KernelError> {
        let dtype = u32::elem_type_native();
        let buffer = |handle: &Option<Handle>, name| -> Result<_, KernelError> {
            let handle = handle.as_ref().map(|handle| argument(handle, name, dtype, self.rows));
            Ok(handle.transpose()?.into())
        };
        let (starts, ends) = (buffer(&self.starts, "starts")?, buffer(&self.lengths, "lengths")?);
        Ok(RowBoundsLaunch::new(starts, ends, self.cols as u32))
    }

    pub(crate) fn extent(&self) -> usize {
        if self.rows == 0 || self.cols == 0 {
            return 0;
        }
        (self.rows - 1) * self.row_stride + (self.cols - 1) * self.col_stride + 1
    }
}

/// Two `[rows, k]` buffers.
#[cfg(feature = "kernels")]
#[derive(Clone, Debug)]
pub struct Selected {
    /// Input dtype.
    pub values: Handle,
    /// Index dtype; empty slots: see [`Rows::with_lengths`].
    pub indices: Handle,
}

/// Selection as dense rows.
#[cfg(feature = "kernels")]
#[derive(Clone, Debug)]
pub struct Masked {
    /// `[rows, cols]`; others are `+0`.
    pub values: Handle,
    /// `[rows, k]` in index order, if requested.
    pub indices: Option<Handle>,
}

/// Maps rows to units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Routine {
    /// Plane or part per row, in registers.
    Plane,
    /// Cube per row, in registers.
    Block,
    /// Plane per row, read twice.
    Delegate,
    /// Cube per row, read once.
    Sampled,
    /// Several cubes per row, read once.
    Filter,
    /// Cube per row, read in each pass.
    Cube,
    /// Unit per row, read in each pass.
    Unit,
    /// Cube per row; never chosen.
    Radix,
}

/// All routines.
pub const ROUTINES: &[Routine] = &[
    Routine::Plane,
    Routine::Block,
    Routine::Delegate,
    Routine::Sampled,
    Routine::Filter,
    Routine::Cube,
    Routine::Unit,
    Routine::Radix,
];

impl Routine {
    /// Name in commands.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plane => "plane",
            Self::Block => "block",
            Self::Delegate => "delegate",
            Self::Sampled => "sampled",
            Self::Filter => "filter",
            Self::Cube => "cube",
            Self::Unit => "unit",
            Self::Radix => "radix",
        }
    }
}

/// Draw settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawSettings {
    /// Divides the logits; above 0.
    pub temperature: f32,
    /// Share of weight to keep; above 1 keeps all.
    pub top_p: f32,
    /// Share of the greatest weight that others need.
    pub min_p: f32,
    /// Candidates to keep.
    pub count: u32,
}

/// Number in `[0, 1)` that draws for `row`: 24 hash bits.
pub fn draw_uniform(seed: [u32; 2], row: u32) -> f32 {
    let mix = |x: u32| {
        let x = (x ^ (x >> 16)).wrapping_mul(DRAW_FACTORS[0]);
        let x = (x ^ (x >> 15)).wrapping_mul(DRAW_FACTORS[1]);
        x ^ (x >> 16)
    };
    (mix(mix(row ^ seed[0]) ^ seed[1]) >> 8) as f32 / DRAW_NUMBERS
}

/// `lowbias32`.
pub(super) const DRAW_FACTORS: [u32; 2] = [0x7feb_352d, 0x846c_a68b];

pub(super) const DRAW_NUMBERS: f32 = (1 << 24) as f32;

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Seeds are a promise.
    #[rstest]
    #[case([0, 0], 0, 0.0)]
    #[case([1, 2], 3, 15846834.0 / DRAW_NUMBERS)]
    #[case([u32::MAX, 7], 1 << 31, 7593205.0 / DRAW_NUMBERS)]
    fn numbers_stay(#[case] seed: [u32; 2], #[case] row: u32, #[case] expected: f32) {
        assert_eq!(draw_uniform(seed, row), expected);
    }
}
