//! Packed rows: an entry touches one memory line.

use cubecl::{
    ir::{ElemType, FloatKind, UIntKind},
    prelude::*,
    server::Handle,
};

use crate::{
    error::KernelError,
    launch::{Grid, aligned, allocate, argument},
    spmm::{
        compressed::Compressed,
        tuning::{PACKED_MIN_BYTES, PACKED_MIN_ENTRIES},
        types::Csr,
    },
};

/// Most bytes of a packed row.
const LINE: usize = 128;

/// In elements.
#[derive(Clone, Copy)]
pub(super) struct RowLayout {
    pub values: usize,
    pub columns: usize,
    /// Where columns begin.
    pub offset: usize,
}

impl RowLayout {
    pub fn separate(k: usize) -> Self {
        Self { values: k, columns: k, offset: 0 }
    }
}

pub(super) struct Packed {
    pub handle: Handle,
    pub layout: RowLayout,
}

fn check(x: &Compressed) -> Result<usize, KernelError> {
    let refuse = |reason: String| Err(KernelError::Routine { routine: "packed", reason });
    let size = x.index.size();
    let row = x.k * (size_of::<f32>() + size);
    if x.dtype != ElemType::Float(FloatKind::F32) {
        return refuse("it packs f32 only".into());
    }
    if !(x.k * size).is_multiple_of(size_of::<u32>()) {
        return refuse("the columns of a row do not fill whole words".into());
    }
    match row {
        ..=LINE => Ok(row),
        _ => refuse(format!("a row has {row} bytes; the limit is {LINE}")),
    }
}

pub(crate) fn pays(csr: &Csr, x: &Compressed) -> bool {
    let large = |row| row > LINE / 2 && csr.cols * row >= PACKED_MIN_BYTES;
    check(x).is_ok_and(large) && csr.nnz >= csr.cols * PACKED_MIN_ENTRIES
}

pub(super) fn pack(client: &Client, csr: &Csr, x: &Compressed) -> Result<Packed, KernelError> {
    check(x)?;
    let (size, word) = (x.index.size(), size_of::<u32>());
    let words = LINE / word;
    let layout = RowLayout { values: words, columns: LINE / size, offset: x.k * word / size };
    let columns = x.k * size / word;
    let vector = client
        .io_optimized_vector_sizes(word)
        .filter(|&vector| {
            [x.k, columns, words].iter().all(|n| n.is_multiple_of(vector))
                && aligned(x.values, vector * word)
                && aligned(x.columns, vector * word)
        })
        .max()
        .unwrap_or(1);
    let total = csr.cols * words;
    let dtype = ElemType::UInt(UIntKind::U32);
    let handle = allocate(client, "packed rows", total, dtype)?;
    let grid = Grid::elementwise(client, total / vector, total)?;
    // SAFETY: lengths checked; the kernel checks positions.
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

/// Leaves padding unwritten.
#[cube(launch_unchecked, address_type = "dynamic")]
fn pack_kernel<N: Size>(
    values: &[Vector<u32, N>],
    columns: &[Vector<u32, N>],
    packed: &mut [Vector<u32, N>],
    value_loads: u32,
    column_loads: u32,
    row_loads: u32,
) {
    if ABSOLUTE_POS >= packed.len() {
        terminate!();
    }
    let row = ABSOLUTE_POS / row_loads as usize;
    let place = (ABSOLUTE_POS - row * row_loads as usize) as u32;
    if place < value_loads {
        packed[ABSOLUTE_POS] = values[row * value_loads as usize + place as usize];
    } else {
        if place < value_loads + column_loads {
            packed[ABSOLUTE_POS] =
                columns[row * column_loads as usize + (place - value_loads) as usize];
        }
    }
}
