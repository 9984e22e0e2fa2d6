use cubecl::{
    ir::{ElemType, FloatKind},
    prelude::*,
    server::Handle,
};

use crate::launch::aligned;

/// Contiguous rows.
#[derive(Clone, Copy, Debug)]
pub struct DenseRows<'a> {
    /// `[rows, width]` of `dtype`.
    pub handle: &'a Handle,
    /// f32, f64, f16 or bf16.
    pub dtype: ElemType,
    /// Rows.
    pub rows: usize,
    /// Elements per row.
    pub width: usize,
}

impl DenseRows<'_> {
    pub(super) fn elements(&self) -> usize {
        self.rows * self.width
    }

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

/// Rows `pitch` elements apart.
#[derive(Clone, Copy, Debug)]
pub struct PitchedRows<'a> {
    /// Rows.
    pub rows: DenseRows<'a>,
    /// At least the width.
    pub pitch: usize,
}

impl<'a> From<DenseRows<'a>> for PitchedRows<'a> {
    fn from(rows: DenseRows<'a>) -> Self {
        Self { rows, pitch: rows.width }
    }
}

impl PitchedRows<'_> {
    /// In whole loads.
    pub(super) fn extent(&self, load: usize) -> usize {
        match self.rows.rows {
            0 => 0,
            rows => (rows - 1) * self.pitch + self.rows.width.next_multiple_of(load),
        }
    }

    /// A row's last load may read padding.
    pub(super) fn load_width(&self) -> usize {
        let (handle, size) = (self.rows.handle, self.rows.dtype.size());
        let held = handle.size_in_used() as usize / size;
        let fitting = [4, 2].into_iter().filter(|&load| self.extent(load) <= held);
        access_width(handle, size, fitting, &[self.pitch])
    }
}

pub(super) fn access_width(
    handle: &Handle,
    size: usize,
    widths: impl IntoIterator<Item = usize>,
    lengths: &[usize],
) -> usize {
    let divides = |width| lengths.iter().all(|length: &usize| length.is_multiple_of(width));
    let fits = |&width: &usize| divides(width) && aligned(handle, width * size);
    widths.into_iter().find(fits).unwrap_or(1)
}

/// Right factor.
#[derive(Clone, Copy, Debug)]
pub struct Weight<'a> {
    /// f32.
    pub handle: &'a Handle,
    /// Rows.
    pub inputs: usize,
    /// Columns.
    pub outputs: usize,
    /// Row and column strides.
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
