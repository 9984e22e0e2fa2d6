//! Entries by column, per tile of rows. Order varies; distances do not.
//!
//! ```text
//! count the entries of each (tile, column)    atomics
//! reserve room for each counter               one atomic per plane
//! place the entries
//! ```

use cubecl::{
    ir::{ElemType, UIntKind},
    prelude::*,
    server::Handle,
};

use crate::{
    device::plane_or_unit,
    distance::{
        launch::planes_for,
        merge::pair::Sparse,
        semiring::Algebra,
        tuning::{COUNTER_BYTES, TILE_BYTES},
        types::Prepared,
    },
    error::KernelError,
    launch::{Grid, allocate, argument, fill_zero},
};

pub(in crate::distance) fn check_cols(
    routine: &'static str,
    cols: usize,
) -> Result<(), KernelError> {
    let bytes = cols.saturating_mul(2 * size_of::<i32>());
    match bytes > COUNTER_BYTES {
        true => Err(KernelError::Routine {
            routine,
            reason: format!(
                "it has a slot for each of at most {} columns, not {cols}; merge has none",
                COUNTER_BYTES / (2 * size_of::<i32>())
            ),
        }),
        false => Ok(()),
    }
}

pub(in crate::distance) struct Columns {
    /// Column starts and ends, per tile.
    pub starts: Handle,
    pub ends: Handle,
    /// Tile row, value bits; then padding at spare sums.
    pub entries: Handle,
    pub length: usize,
    pub tile: usize,
    pub tiles: usize,
    /// Sums per tile, a power of two.
    pub room: usize,
}

pub(in crate::distance) fn bits(dtype: ElemType) -> ElemType {
    ElemType::UInt(match dtype.size() {
        8 => UIntKind::U64,
        _ => UIntKind::U32,
    })
}

pub(in crate::distance) fn row_tiles(
    rows: usize,
    cols: usize,
    dtype: ElemType,
    algebra: &Algebra,
) -> Result<[usize; 2], KernelError> {
    check_cols("inverted", cols)?;
    let most = TILE_BYTES / dtype.size() / algebra.sums();
    let tiles = rows.div_ceil(most).max(1);
    if tiles * cols >= i32::MAX as usize {
        return Err(KernelError::Routine {
            routine: "inverted",
            reason: format!("{tiles} tiles of {cols} columns exceed 2^31 counters"),
        });
    }
    Ok([rows.div_ceil(tiles).max(1), tiles])
}

impl Columns {
    pub fn new(client: &Client, matrix: &Prepared, algebra: &Algebra) -> Result<Self, KernelError> {
        let [tile, tiles] = row_tiles(matrix.rows, matrix.cols, matrix.dtype, algebra)?;
        let counters = tiles * matrix.cols;
        let int = i32::elem_type_native();
        let starts = allocate(client, "starts", counters, int)?;
        let ends = allocate(client, "ends", counters + 1, int)?;
        let plane = plane_or_unit(client) as usize;
        let length = matrix.nnz + plane;
        let columns = Self {
            starts,
            ends,
            entries: allocate(client, "entries", 2 * length, bits(matrix.dtype))?,
            length,
            tile,
            tiles,
            room: tile.next_power_of_two().max(plane),
        };
        if matrix.nnz > 0 {
            columns.fill(client, matrix)?;
        } else {
            fill_zero(client, &columns.starts, int, counters)?;
            fill_zero(client, &columns.ends, int, counters)?;
        }
        Ok(columns)
    }

    fn fill(&self, client: &Client, matrix: &Prepared) -> Result<(), KernelError> {
        let int = i32::elem_type_native();
        let counters = self.tiles * matrix.cols;
        // The last counts reserved entries.
        fill_zero(client, &self.ends, int, counters + 1)?;
        let elements = matrix.nnz.max(counters + 1).max(matrix.rows + 1);
        let launch = |placed: bool| -> Result<(), KernelError> {
            let (grid, plane) = planes_for(client, matrix.rows, elements)?;
            // SAFETY: lengths checked; `Matrix` bounds counters; entries never collide.
            unsafe {
                columns_kernel::launch_unchecked(
                    client,
                    grid.count,
                    grid.dim,
                    grid.address,
                    matrix.arguments()?,
                    argument(&self.ends, "ends", int, counters + 1)?,
                    self.argument(matrix.dtype)?,
                    ColumnsShapeLaunch::new(
                        matrix.rows,
                        self.tile,
                        matrix.cols,
                        self.room as u32,
                        matrix.nnz,
                    ),
                    plane,
                    placed,
                    [matrix.dtype, bits(matrix.dtype)],
                );
            }
            Ok(())
        };
        launch(false)?;
        let grid = Grid::elementwise(client, counters, elements)?;
        let planes = plane_or_unit(client) > 1;
        // SAFETY: as above.
        unsafe {
            room_kernel::launch_unchecked(
                client,
                grid.count,
                grid.dim,
                grid.address,
                argument(&self.starts, "starts", int, counters)?,
                argument(&self.ends, "ends", int, counters + 1)?,
                counters,
                planes,
            );
        }
        launch(true)
    }

    pub fn argument(&self, dtype: ElemType) -> Result<BufferArg, KernelError> {
        argument(&self.entries, "entries", bits(dtype), 2 * self.length)
    }
}

#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct ColumnsShape {
    rows: usize,
    tile: usize,
    cols: usize,
    room: u32,
    end: usize,
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn columns_kernel<S: Float, P: Int>(
    matrix: Sparse<S>,
    ends: &[Atomic<i32>],
    entries: &mut [Vector<P, Const<2>>],
    shape: ColumnsShape,
    #[comptime] plane: u32,
    #[comptime] placed: bool,
    #[define(S, P)] _dtypes: [ElemType; 2],
) {
    let row = CUBE_POS * CUBE_DIM_Y as usize + UNIT_POS_Y as usize;
    if row >= shape.rows {
        terminate!();
    }
    if comptime!(placed) {
        if row == 0 {
            let nothing = packed::<S, P>(shape.room + UNIT_POS_X, S::new(0.0));
            entries[shape.end + UNIT_POS_X as usize] = nothing;
        }
    }
    let part = row / shape.tile;
    let mut entry = matrix.start(row) + UNIT_POS_X as usize;
    let end = matrix.start(row + 1);
    while entry < end {
        let counter = part * shape.cols + matrix.column(entry) as usize;
        let place = ends[counter].fetch_add(1);
        if comptime!(placed) {
            let row = (row - part * shape.tile) as u32;
            entries[place as usize] = packed::<S, P>(row, matrix.value(entry));
        }
        entry += comptime!(plane as usize);
    }
}

#[cube]
fn packed<S: Float, P: Int>(row: u32, value: S) -> Vector<P, Const<2>> {
    let mut packed = Vector::<P, Const<2>>::zeroed();
    packed.insert(0usize, P::cast_from(row));
    packed.insert(1usize, P::reinterpret(value));
    packed
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn room_kernel(
    starts: &mut [i32],
    ends: &[Atomic<i32>],
    counters: usize,
    #[comptime] planes: bool,
) {
    let mut count = 0i32;
    if ABSOLUTE_POS < counters {
        count = ends[ABSOLUTE_POS].load();
    }
    let mut start = 0i32;
    if comptime!(planes) {
        let through = plane_inclusive_sum(count);
        let last = PLANE_DIM - 1;
        let mut first = 0i32;
        if UNIT_POS_PLANE == last {
            first = ends[counters].fetch_add(through);
        }
        start = plane_shuffle(first, last) + through - count;
    } else {
        if count > 0 {
            start = ends[counters].fetch_add(count);
        }
    }
    if ABSOLUTE_POS < counters {
        starts[ABSOLUTE_POS] = start;
        ends[ABSOLUTE_POS].store(start);
    }
}
