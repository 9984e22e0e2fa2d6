//! The gradient of products with compressed rows from columns of the upstream gradient that are resident in shared memory, a
//! [stretch](super::stretches) at a time.
//!
//! A cube takes members of one column, and has the column's values for a stretch of rows of the upstream gradient. For each member a team of
//! units adds up those that the entries of its row name; sums of stretches are added up in order. Each sum has an order of its own, which
//! depends on the entries alone: deterministic.
#![allow(
    clippy::manual_div_ceil,
    reason = "kernels know no `div_ceil` on runtime integers"
)]

mod spans;

use crate::device::rounded_accumulator;
use crate::device::units_per_cube;
use cubecl::{
    ir::{ElemType, FloatKind},
    prelude::*,
    server::Handle,
};

use super::Compressed;
use super::Operand;
use super::members::Chunk;
use super::members::Members;
use super::members::RUN;
use super::shape;
use super::stretches::ROUTINE;
use super::stretches::Stretches;
use super::stretches::refuse;
use crate::error::KernelError;
use crate::launch::Grid;
use crate::launch::allocate;
use crate::launch::argument;

/// Units of a cube, and most columns.
const UNITS: u32 = 1024;
/// Cubes for each stretch; each loads its columns again. On a graph of Reddit's size 128 took 1.81, 3.26 and 6.17 ms for k = 16,
/// 32 and 64 of 256, 256 1.87, 3.29 and 6.20, and 512 1.97, 3.41 and 6.30 (NVIDIA H200).
const CUBES: usize = 128;
/// Rows and columns of a tile that is turned.
const TILE: u32 = 32;
/// Words of a vector.
const WORDS: usize = 4;

/// How planes share members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Shape {
    plane: u32,
    units: u32,
    /// Columns of a stretch.
    columns: usize,
}

/// What is added up.
pub(super) struct Resident<'a> {
    /// The transpose of the product's operand.
    pub turned: &'a Operand<'a>,
    pub stretches: &'a Stretches,
    /// `[turned.cols, width]` in the dtype of `x`.
    pub upstream: &'a Handle,
    pub x: &'a Compressed<'a>,
}

impl Resident<'_> {
    /// How planes share members, and rows are shared out.
    pub fn check(&self, client: &Client) -> Result<(u32, Chunk), KernelError> {
        let Self {
            turned,
            stretches,
            x,
            ..
        } = self;
        let plane = shape::check(client, ROUTINE, |_| 0)?;
        if x.dtype == ElemType::Float(FloatKind::F64) {
            return refuse("it adds up f32, f16 and bf16".into());
        }
        rounded_accumulator(client, x.dtype)?;
        if turned.weights.is_some() {
            return refuse("entries have weights".into());
        }
        let units = units_per_cube(client, UNITS);
        if x.width > units as usize {
            let width = x.width;
            return refuse(format!(
                "{width} columns; cubes of {units} units have one for each"
            ));
        }
        let room = Stretches::most_columns(client);
        if stretches.columns() > room {
            let columns = stretches.columns();
            return refuse(format!(
                "stretches of {columns} columns; there is room for {room}"
            ));
        }
        let csr = &turned.csr;
        if csr.rows * x.k > u32::MAX as usize {
            return refuse("more than 2^32 members".into());
        }
        match Chunk::new(client, plane, units, x.k) {
            Some(chunk) => Ok((plane, chunk)),
            None => refuse(format!("no room for {} members of a row", x.k)),
        }
    }

    /// What [`Resident::check`] allows.
    pub fn launch(
        &self,
        client: &Client,
        (plane, chunk): (u32, Chunk),
    ) -> Result<Handle, KernelError> {
        let Self {
            turned,
            stretches,
            x,
            ..
        } = *self;
        let (dtype, width, k) = (x.dtype, x.width, x.k);
        let csr = turned.csr;
        let sum = f32::elem_type_native();
        let total = csr.rows * k;
        let output = allocate(client, "gradient", total, dtype)?;
        if total == 0 || csr.cols == 0 {
            crate::launch::fill_zero(client, &output, dtype, total)?;
            return Ok(output);
        }
        let number = stretches.number();
        let stride = number * stretches.columns();
        let columns = allocate(client, "columns of upstream", width * stride, sum)?;
        let partials = allocate(client, "sums of stretches", total * number, sum)?;
        let members = Members::new(client, &x.picked(), [csr.rows, width], chunk)?;
        let arguments = turned.arguments(client, dtype, sum)?;
        let largest = (width * stride).max(total * number).max(stretches.words());
        let shape = Shape {
            plane,
            units: chunk.units,
            columns: stretches.columns(),
        };
        let listed = || argument(&members.members, "members", u32::elem_type_native(), total);
        let sums = || argument(&partials, "sums of stretches", sum, total * number);
        // SAFETY: `argument` checks the lengths; entries, columns and members are in range by how they were made; buffers that stand in for
        // absent factors are not read.
        unsafe {
            let across = width.div_ceil(TILE as usize);
            let tiles = csr.cols.div_ceil(TILE as usize) * across;
            let dim = CubeDim::new_2d(TILE, TILE / 4);
            let grid = Grid::new(client, tiles, dim, largest)?;
            turn_kernel::launch_unchecked(
                client,
                grid.count,
                grid.dim,
                grid.address,
                argument(self.upstream, "upstream", dtype, csr.cols * width)?,
                arguments.cols,
                argument(&columns, "columns of upstream", sum, width * stride)?,
                csr.cols,
                width,
                stride,
                across,
                turned.scales.cols.is_some(),
                dtype,
            );
            let dim = CubeDim::new_2d(plane, shape.units / plane);
            let grid = Grid::new(client, number * CUBES, dim, largest)?;
            spans::sums_kernel::launch_unchecked(
                client,
                grid.count,
                grid.dim,
                grid.address,
                WORDS,
                listed()?,
                argument(
                    &members.firsts,
                    "firsts",
                    u32::elem_type_native(),
                    width + 1,
                )?,
                stretches.spans()?,
                stretches.entries()?,
                argument(&columns, "columns of upstream", sum, width * stride)?,
                sums()?,
                csr.rows,
                number,
                k as u32,
                stride,
                width as u32,
                shape,
            );
            let dim = CubeDim::new_1d(shape.units);
            let grid = Grid::new(client, members.chunks, dim, largest)?;
            combine_kernel::launch_unchecked(
                client,
                grid.count,
                grid.dim,
                grid.address,
                listed()?,
                members.runs(width)?,
                sums()?,
                arguments.rows,
                argument(&output, "gradient", dtype, total)?,
                number,
                members.chunks,
                width,
                k,
                chunk,
                turned.scales.rows.is_some(),
                dtype,
            );
        }
        Ok(output)
    }
}

/// The columns of a matrix one behind the other, each element multiplied with its row's factor: a tile by way of shared memory.
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(
    clippy::too_many_arguments,
    reason = "a matrix with factors, and sizes"
)]
fn turn_kernel<E: Float>(
    upstream: &[E],
    factors: &[f32],
    columns: &mut [f32],
    rows: usize,
    width: usize,
    stride: usize,
    across: usize,
    #[comptime] scaled: bool,
    #[define(E)] _dtype: ElemType,
) {
    let down = CUBE_POS / across;
    let first_row = down * comptime!(TILE as usize);
    let first_column = (CUBE_POS - down * across) * comptime!(TILE as usize);
    let mut tile = Shared::<[f32]>::new_slice(comptime!((TILE * (TILE + 1)) as usize));
    #[unroll]
    for i in 0..4u32 {
        let line = UNIT_POS_Y + comptime!(i * TILE / 4);
        let row = first_row + line as usize;
        let column = first_column + UNIT_POS_X as usize;
        if row < rows && column < width {
            let mut value = f32::cast_from(upstream[row * width + column]);
            if comptime!(scaled) {
                value *= factors[row];
            }
            tile[(line * comptime!(TILE + 1) + UNIT_POS_X) as usize] = value;
        }
    }
    sync_cube();
    #[unroll]
    for i in 0..4u32 {
        let line = UNIT_POS_Y + comptime!(i * TILE / 4);
        let row = first_row + UNIT_POS_X as usize;
        let column = first_column + line as usize;
        if row < rows && column < width {
            columns[column * stride + row] =
                tile[(UNIT_POS_X * comptime!(TILE + 1) + line) as usize];
        }
    }
}

/// The sums of a chunk's members, put together in shared memory and written in one go.
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(
    clippy::too_many_arguments,
    reason = "sums, where they belong and sizes"
)]
fn combine_kernel<E: Float>(
    members: &[u32],
    runs: &[u32],
    partials: &[f32],
    factors: &[f32],
    gradient: &mut [E],
    stretches: usize,
    chunks: usize,
    width: usize,
    k: usize,
    #[comptime] chunk: Chunk,
    #[comptime] scaled: bool,
    #[define(E)] _dtype: ElemType,
) {
    let number = CUBE_POS;
    if number >= chunks {
        terminate!();
    }
    let total = members.len();
    let first = number * chunk.members;
    let mut tile = Shared::<[f32]>::new_slice(chunk.members);
    let mut column = (UNIT_POS / chunk.plane) as usize;
    while column < width {
        let run = (number * width + column) * RUN;
        let count = runs[run + 1];
        let mut at = UNIT_POS % chunk.plane;
        while at < count {
            let place = (runs[run] + at) as usize;
            let mut sum = 0.0f32;
            for stretch in 0..stretches {
                sum += partials[stretch * total + place];
            }
            tile[members[place] as usize - first] = sum;
            at += chunk.plane;
        }
        column += comptime!((chunk.units / chunk.plane) as usize);
    }
    sync_cube();
    let mut at = UNIT_POS as usize;
    let count = min(chunk.members, total - first);
    while at < count {
        let mut sum = tile[at];
        if comptime!(scaled) {
            sum *= factors[(first + at) / k];
        }
        gradient[first + at] = E::cast_from(sum);
        at += comptime!(chunk.units as usize);
    }
}
