//! Operands of dense operations.

use cubecl::{
    ir::{ElemType, FloatKind},
    prelude::*,
    server::Handle,
};

use crate::launch::aligned;

/// Contiguous rows in device memory.
#[derive(Clone, Copy, Debug)]
pub struct DenseRows<'a> {
    /// `[rows, width]` of `dtype`.
    pub handle: &'a Handle,
    /// f32, f64, f16 or bf16.
    pub dtype: ElemType,
    /// Rows.
    pub rows: usize,
    /// Elements of a row.
    pub width: usize,
}

impl DenseRows<'_> {
    pub(super) fn elements(&self) -> usize {
        self.rows * self.width
    }

    /// Elements of a load of these rows and `others`; the kernels' buffers are aligned.
    pub(super) fn vector(&self, client: &Client, others: &[&Handle]) -> usize {
        let size = self.dtype.size();
        let all_aligned = |vector: usize| {
            let mut all = others.iter().copied().chain([self.handle]);
            all.all(|handle| aligned(handle, vector * size))
        };
        client
            .io_optimized_vector_sizes(size)
            .filter(|&vector| self.width.is_multiple_of(vector) && all_aligned(vector))
            .max()
            .unwrap_or(1)
    }
}

/// A matrix that multiplies rows from the right.
#[derive(Clone, Copy, Debug)]
pub struct Weight<'a> {
    /// f32.
    pub handle: &'a Handle,
    /// Rows: width of a factor.
    pub inputs: usize,
    /// Columns: width of the result.
    pub outputs: usize,
    /// Elements from a row, and a column, to the next.
    pub strides: [usize; 2],
}

pub(super) fn dtype_refusal(sides: &[&DenseRows]) -> Option<String> {
    sides.iter().find_map(|rows| {
        let (dtype, width) = (rows.dtype, rows.width);
        if dtype != ElemType::Float(FloatKind::F32) {
            Some(format!("rows of {dtype:?}, not of f32"))
        } else if width == 0 {
            Some("rows of no element".into())
        } else {
            None
        }
    })
}

/// Loads by four, besides.
pub(super) fn tensor_core_refusal(sides: &[&DenseRows]) -> Option<String> {
    let by_four = |rows: &&&DenseRows| {
        rows.width.is_multiple_of(4) && aligned(rows.handle, 4 * size_of::<f32>())
    };
    dtype_refusal(sides).or_else(|| {
        let rows = sides.iter().find(|rows| !by_four(rows))?;
        Some(format!(
            "rows of {} elements that cannot be loaded by four",
            rows.width
        ))
    })
}
