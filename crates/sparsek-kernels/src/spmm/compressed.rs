use cubecl::{ir::ElemType, prelude::*, server::Handle};

use crate::{
    error::KernelError,
    launch::{Grid, allocate, argument},
};

/// k elements per row, by ascending column.
#[derive(Clone, Copy, Debug)]
pub struct Compressed<'a> {
    /// `[rows, k]` of `dtype`.
    pub values: &'a Handle,
    /// `[rows, k]`, below `width`, ascending per row.
    pub columns: &'a Handle,
    /// f32, f64, f16 or bf16.
    pub dtype: ElemType,
    /// From [`column_dtype`](crate::column_dtype).
    pub index: ElemType,
    /// Elements per row.
    pub k: usize,
    /// Matrix columns.
    pub width: usize,
}

#[derive(Clone, Copy)]
pub(super) struct SelectedColumns<'a> {
    /// `[rows, k]`.
    pub columns: &'a Handle,
    pub index: ElemType,
    pub k: usize,
}

impl<'a> Compressed<'a> {
    pub(super) fn selected(&self) -> SelectedColumns<'a> {
        SelectedColumns { columns: self.columns, index: self.index, k: self.k }
    }
}

/// Computes `out[r, i] = source[r, columns[r, i]]`.
///
/// `source` is `[rows, width]`, `columns` and the result `[rows, k]`.
pub fn gather_columns(
    client: &Client,
    source: &Handle,
    columns: &Handle,
    [rows, width, k]: [usize; 3],
    [dtype, index]: [ElemType; 2],
) -> Result<Handle, KernelError> {
    let elements = rows * k;
    let output = allocate(client, "output", elements, dtype)?;
    if elements == 0 {
        return Ok(output);
    }
    let grid = Grid::elementwise(client, elements, rows * width)?;
    // SAFETY: lengths checked; `Compressed` promises columns below `width`.
    unsafe {
        gather_columns_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            argument(source, "source", dtype, rows * width)?,
            argument(columns, "columns", index, elements)?,
            argument(&output, "output", dtype, elements)?,
            k,
            width,
            [dtype, index],
        );
    }
    Ok(output)
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn gather_columns_kernel<E: Numeric, I: Numeric>(
    source: &[E],
    columns: &[I],
    output: &mut [E],
    k: usize,
    width: usize,
    #[define(E, I)] _dtypes: [ElemType; 2],
) {
    if ABSOLUTE_POS < output.len() {
        let row = ABSOLUTE_POS / k;
        output[ABSOLUTE_POS] = source[row * width + usize::cast_from(columns[ABSOLUTE_POS])];
    }
}
