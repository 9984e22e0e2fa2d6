//! Compressed rows with their columns right behind their values, so that an entry touches one line of memory instead of two.

use cubecl::{
    ir::{ElemType, FloatKind, UIntKind},
    prelude::*,
    server::Handle,
};

use super::{Compressed, Csr};
use crate::{
    error::KernelError,
    launch::{Grid, aligned, allocate, argument},
};

/// Bytes that memory gives at a time: what a row must fit into with its columns, or there is nothing to gain.
const LINE: usize = 128;
/// Bytes of all rows that a cache is expected to hold, which needs no packing. For k = 16 of 256 a product with a graph of
/// ogbn-products' size took 7.4 ms, packed 5.2, packing included (NVIDIA H200, whose cache has 50 MB).
const CACHE: usize = 1 << 26;
/// Fewest entries for each row, so that packing pays.
const ENTRIES: usize = 8;

/// Where rows are: elements between the starts of two rows' values and columns, and columns before the first.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    pub values: usize,
    pub columns: usize,
    pub offset: usize,
}

impl Layout {
    /// Values and columns in matrices of their own.
    pub fn apart(k: usize) -> Self {
        Self {
            values: k,
            columns: k,
            offset: 0,
        }
    }
}

/// Rows in one buffer.
pub(super) struct Packed {
    pub handle: Handle,
    pub layout: Layout,
}

/// Bytes of a row with its columns, where they can be packed.
fn check(x: &Compressed) -> Result<usize, KernelError> {
    let refuse = |reason: String| {
        Err(KernelError::Routine {
            routine: "packed",
            reason,
        })
    };
    let size = x.index.size();
    let row = x.k * (size_of::<f32>() + size);
    if x.dtype != ElemType::Float(FloatKind::F32) {
        return refuse("it packs f32 only".into());
    }
    if !(x.k * size).is_multiple_of(size_of::<u32>()) {
        return refuse("columns of a row do not fill words".into());
    }
    match row {
        ..=LINE => Ok(row),
        _ => refuse(format!("{row} bytes for a row; it has room for {LINE}")),
    }
}

/// Whether packing is faster: many entries for each row, more rows than a cache holds, and each more than half of a line.
pub(super) fn pays(csr: &Csr, x: &Compressed) -> bool {
    let large = |row| row > LINE / 2 && csr.cols * row >= CACHE;
    check(x).is_ok_and(large) && csr.nnz >= csr.cols * ENTRIES
}

/// Packs the rows.
pub(super) fn pack(client: &Client, csr: &Csr, x: &Compressed) -> Result<Packed, KernelError> {
    check(x)?;
    let (size, word) = (x.index.size(), size_of::<u32>());
    let words = LINE / word;
    let layout = Layout {
        values: words,
        columns: LINE / size,
        offset: x.k * word / size,
    };
    let columns = x.k * size / word;
    let vector = client
        .io_optimized_vector_sizes(word)
        .filter(|&vector| {
            [x.k, columns, words]
                .iter()
                .all(|n| n.is_multiple_of(vector))
                && aligned(x.values, vector * word)
                && aligned(x.columns, vector * word)
        })
        .max()
        .unwrap_or(1);
    let total = csr.cols * words;
    let dtype = ElemType::UInt(UIntKind::U32);
    let handle = allocate(client, "packed rows", total, dtype)?;
    let grid = Grid::elementwise(client, total / vector, total)?;
    // SAFETY: `argument` checks the lengths, and the kernel each position against them. Values and columns are copied as words.
    unsafe {
        pack_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            vector,
            argument(x.values, "values", dtype, csr.cols * x.k)?,
            argument(x.columns, "columns", dtype, csr.cols * columns)?,
            argument(&handle, "packed rows", dtype, total)?,
            (x.k / vector) as u32,
            (columns / vector) as u32,
            (words / vector) as u32,
        );
    }
    Ok(Packed { handle, layout })
}

/// A unit for each load: of values, of columns, or nothing.
#[cube(launch_unchecked, address_type = "dynamic")]
fn pack_kernel<N: Size>(
    values: &[Vector<u32, N>],
    columns: &[Vector<u32, N>],
    packed: &mut [Vector<u32, N>],
    of_values: u32,
    of_columns: u32,
    of_row: u32,
) {
    if ABSOLUTE_POS >= packed.len() {
        terminate!();
    }
    let row = ABSOLUTE_POS / of_row as usize;
    let place = (ABSOLUTE_POS - row * of_row as usize) as u32;
    if place < of_values {
        packed[ABSOLUTE_POS] = values[row * of_values as usize + place as usize];
    } else {
        if place < of_values + of_columns {
            packed[ABSOLUTE_POS] =
                columns[row * of_columns as usize + (place - of_values) as usize];
        }
    }
}
