use std::ops::Range;

use cubecl::{
    ir::{ElemType, FloatKind},
    prelude::*,
    server::Handle,
};
use half::f16;

use crate::{
    device::multiprocessors,
    distance::{
        launch::planes_for,
        merge::pair::Sparse,
        semiring::Inner,
        tuning::{PACK_PLANES, ROW_UNITS, SCAN_CUBES},
        types::Prepared,
    },
    error::KernelError,
    launch::{Grid, allocate, argument, fill_zero},
    primitives::infinity::infinity,
};

pub(in crate::distance) const GROUP: usize = 64;
/// Instruction depth.
pub(in crate::distance) const STEP: usize = 16;
const STEPS: usize = 2;
pub(in crate::distance) const BLOCK: usize = 32;
const WIDTH: usize = 8;

/// Dense f16 rows by group, step, 16-row block. Lane `4g + t` holds (g,2t), (g+8,2t), (g,2t+8),
/// (g+8,2t+8), each with its right neighbor.
pub(in crate::distance) struct Packed {
    handle: Handle,
    groups: usize,
    steps: usize,
}

impl Packed {
    fn size([rows, cols]: [usize; 2]) -> [usize; 2] {
        let steps = cols.div_ceil(STEP * STEPS).max(1) * STEPS;
        [rows.div_ceil(GROUP).max(1), steps]
    }

    pub(in crate::distance) fn bytes(size: [usize; 2]) -> usize {
        let [groups, steps] = Self::size(size);
        groups.saturating_mul(steps).saturating_mul(GROUP * STEP * size_of::<f16>())
    }

    pub fn new(
        client: &Client,
        matrix: &Prepared,
        rows: Range<usize>,
        inner: Inner,
    ) -> Result<Self, KernelError> {
        let [groups, steps] = Self::size([rows.len(), matrix.cols]);
        let word = u32::elem_type_native();
        let half = ElemType::Float(FloatKind::F16);
        let elements = groups * steps * GROUP * STEP;
        let packed = Self { handle: allocate(client, "rows", elements, half)?, groups, steps };
        fill_zero(client, &packed.handle, word, 4 * packed.loads())?;
        if matrix.nnz == 0 || rows.is_empty() {
            return Ok(packed);
        }
        let (grid, plane) = planes_for(client, rows.len() * PACK_PLANES, elements.max(matrix.nnz))?;
        // SAFETY: lengths checked; `Matrix` bounds positions.
        unsafe {
            pack_kernel::launch_unchecked(
                client,
                grid.count,
                grid.dim,
                grid.address,
                matrix.arguments()?,
                argument(&packed.handle, "rows", half, elements)?,
                rows.start,
                rows.len(),
                steps,
                plane,
                inner,
                matrix.dtype,
            );
        }
        Ok(packed)
    }

    pub(in crate::distance) fn handle(&self) -> &Handle {
        &self.handle
    }

    pub(in crate::distance) fn loads(&self) -> usize {
        self.groups * self.steps * GROUP * STEP / WIDTH
    }

    pub(in crate::distance) fn steps(&self) -> usize {
        self.steps
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn pack_kernel<S: Float>(
    matrix: Sparse<S>,
    packed: &mut [f16],
    first: usize,
    rows: usize,
    steps: usize,
    #[comptime] plane: u32,
    #[comptime] inner: Inner,
    #[define(S)] _dtype: ElemType,
) {
    let number = CUBE_POS * CUBE_DIM_Y as usize + UNIT_POS_Y as usize;
    let row = number / PACK_PLANES;
    if row >= rows {
        terminate!();
    }
    let offset = number % PACK_PLANES * comptime!(plane as usize);
    let end = matrix.start(first + row + 1);
    let mut entry = matrix.start(first + row) + offset + UNIT_POS_X as usize;
    while entry < end {
        let column = matrix.column(entry) as usize;
        let mut value = matrix.value(entry);
        if comptime!(inner == Inner::Ones) {
            value = select(value == S::new(0.0), S::new(0.0), S::new(1.0));
        } else if comptime!(inner == Inner::Quotients) {
            // Recovers the whole number.
            value = (value * matrix.norm(first + row).sqrt()).round();
        }
        let step = row / GROUP * steps + column / STEP;
        let block = step * comptime!(GROUP / STEP) + row % GROUP / STEP;
        let unit = row % 8 * 4 + column % 8 / 2;
        let word = row % STEP / 8 + column % STEP / 8 * 2;
        let at = (block * BLOCK + unit) * WIDTH + word * 2 + column % 2;
        packed[at] = f16::cast_from(value);
        entry += comptime!(PACK_PLANES * plane as usize);
    }
}

/// Greatest magnitude, one f32; infinity if a value is not whole.
pub fn greatest(
    client: &Client,
    values: &Handle,
    dtype: ElemType,
    count: usize,
) -> Result<Handle, KernelError> {
    let word = u32::elem_type_native();
    let found = allocate(client, "greatest", 1, word)?;
    fill_zero(client, &found, word, 1)?;
    if count == 0 {
        return Ok(found);
    }
    let units = count.min(multiprocessors(client) * SCAN_CUBES * ROW_UNITS as usize);
    let grid = Grid::elementwise(client, units, count)?;
    // SAFETY: lengths checked.
    unsafe {
        greatest_kernel::launch_unchecked(
            client,
            grid.count,
            grid.dim,
            grid.address,
            argument(values, "values", dtype, count)?,
            argument(&found, "greatest", word, 1)?,
            count,
            dtype,
        );
    }
    Ok(found)
}

/// Non-negative floats order by bits; buffers may exceed `count`.
#[cube(launch_unchecked, address_type = "dynamic")]
fn greatest_kernel<E: Float>(
    values: &[E],
    greatest: &[Atomic<u32>],
    count: usize,
    #[define(E)] _dtype: ElemType,
) {
    let of_cube = Shared::<[Atomic<u32>]>::new_slice(4usize);
    if UNIT_POS == 0 {
        of_cube[0].store(0);
    }
    sync_cube();
    let mut found = 0u32;
    let mut at = ABSOLUTE_POS;
    while at < count {
        let value = f32::cast_from(values[at]).abs();
        let bits = select(value.floor() == value, value, infinity::<f32>());
        found = max(found, u32::reinterpret(bits));
        at += CUBE_COUNT * CUBE_DIM as usize;
    }
    of_cube[0].fetch_max(found);
    sync_cube();
    if UNIT_POS == 0 {
        greatest[0].fetch_max(of_cube[0].load());
    }
}
