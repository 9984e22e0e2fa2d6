//! Distances by an inverted index, after Gustavson: for each entry of a row of `x` the entries of its column in `y` add to
//! sums in shared memory. The work is the pairs of entries in the same column, and no more.
//!
//! A plane has a row of `x` and a tile of rows of `y`. Its lanes take the entries of a column, which are of different rows, so
//! sums need no atomics and are added to in the order of the row's entries: deterministic. Where a part of the sums of two long rows
//! ends ([`parts`](super::parts)) it is added to what waits in the output.
#![allow(
    clippy::collapsible_if,
    reason = "outer conditions are decided when the kernel is compiled"
)]

mod tally;

use cubecl::{features::Plane, ir::ElemType, prelude::*};

use super::{
    Job, Matrix, Parameter,
    columns::{self, TILE_BYTES},
    join,
    pair::{Sparse, Two},
    parts::{WHOLE, part_bits},
    semiring::{Needs, Semiring},
};
use crate::{
    aggregate::accumulator,
    error::KernelError,
    launch::{Grid, allocate, argument, units_per_cube},
    topk::select::{NO_LAYOUTS, is_llvmpipe, plane_or_unit},
};
use tally::{Batch, Entries, Tally, Waiting};

/// Units of a cube: one plane, so that none waits for the longer row of another.
const UNITS: u32 = 32;
/// Sums that nothing reads, behind those of a plane, one for each unit; and the fewest.
const SPARE: usize = 4;
/// Entries of a row between two looks at whether any distance is still finite.
const LOOK: u32 = 8;

fn refused(reason: String) -> KernelError {
    KernelError::Routine {
        routine: "inverted",
        reason,
    }
}

/// Whether it can run.
pub(super) fn check(client: &Client, needs: &Needs, matrix: &Matrix) -> Result<(), KernelError> {
    if !needs.annihilates {
        return Err(refused("a column that only one row has counts".into()));
    }
    if is_llvmpipe(client) {
        return Err(refused(NO_LAYOUTS.into()));
    }
    if plane_or_unit(client) > 1 && !client.features().plane.contains(Plane::Sync) {
        return Err(refused("planes cannot wait for themselves".into()));
    }
    let limit = client.properties().hardware.max_shared_memory_size;
    if limit < 2 * TILE_BYTES {
        let wanted = 2 * TILE_BYTES;
        return Err(refused(format!(
            "{wanted} bytes of shared memory; there are {limit}"
        )));
    }
    columns::cut(
        matrix.rows,
        matrix.cols,
        accumulator(client, matrix.dtype)?,
        needs,
    )
    .map(drop)
}

/// How sums lie in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Blueprint {
    /// Units of a plane, and planes of a cube.
    plane: u32,
    planes: u32,
    /// Rows of a tile that shared memory has room for.
    room: usize,
    /// Only tiles that do not end before the row.
    half: bool,
    /// Both matrices have rows whose sums are added up in parts.
    parts: bool,
}

impl Blueprint {
    /// From the sums of a plane to those of the next.
    fn stride(&self) -> usize {
        self.room + SPARE.max(self.plane as usize)
    }
}

pub(super) fn launch<M: Semiring>(job: &Job) -> Result<(), KernelError> {
    let client = job.client;
    let columns = job.columns.expect("made with the index");
    let plane = plane_or_unit(client);
    // Few kernels for all sizes of tiles.
    let room = columns.tile.next_power_of_two().max(plane as usize);
    let sums = if M::NEEDS.other { 2 } else { 1 };
    let limit = client.properties().hardware.max_shared_memory_size;
    // Where second sums are not needed there are the spare ones.
    let size = job.x.dtype.size();
    let spare = SPARE.max(plane as usize);
    let fitting = (limit - SPARE * size) / ((room + spare) * size * sums);
    let planes = units_per_cube(client, UNITS.max(plane)) / plane;
    let planes = planes.min(1 << fitting.max(1).ilog2());
    let longest = job.x.longest.min(job.y.longest);
    let blueprint = Blueprint {
        plane,
        planes,
        room,
        half: job.half(&M::NEEDS),
        parts: part_bits(longest as u32, job.x.cols as u32) < WHOLE,
    };
    let groups = job.rows.len().div_ceil(planes as usize);
    let dim = CubeDim::new_2d(plane, planes);
    let counters = columns.tiles * job.y.cols;
    let grid = Grid::new(
        client,
        groups * columns.tiles,
        dim,
        job.elements().max(counters),
    )?;
    let int = i32::elem_type_native();
    let dtype = job.x.dtype;
    let [x, y] = [job.x.arguments()?, job.y.arguments()?];
    let noted = if M::NEEDS.two_wait() { job.pairs() } else { 1 };
    let others = allocate(client, "sums", noted, dtype)?;
    // SAFETY: the lengths are checked; offsets, columns and rows are in range by the contract of `Matrix`.
    unsafe {
        inverted_kernel::launch_unchecked::<M>(
            client,
            grid.count,
            grid.dim,
            grid.address,
            x.indptr,
            x.indices,
            x.values,
            x.norms,
            y.indptr,
            y.indices,
            y.values,
            y.norms,
            argument(&columns.starts, "starts", int, counters)?,
            argument(&columns.ends, "ends", int, counters)?,
            argument(&columns.rows, "rows", int, job.y.nnz)?,
            argument(&columns.values, "values", dtype, job.y.nnz)?,
            job.output()?,
            argument(&others, "sums", dtype, noted)?,
            job.parameter.launch(),
            ShapeLaunch::new(
                job.rows.start,
                job.rows.len(),
                job.y.rows,
                job.x.cols,
                columns.tile,
                columns.tiles,
                groups,
            ),
            blueprint,
            job.own,
            dtype,
        );
    }
    match blueprint.half {
        true => join::mirror::<M>(job),
        false => Ok(()),
    }
}

/// Rows of `x` from the first on, rows of `y` in tiles, groups of rows for each tile.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Shape {
    first: usize,
    rows: usize,
    across: usize,
    cols: usize,
    tile: usize,
    tiles: usize,
    groups: usize,
}

#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments, reason = "three matrices of four buffers")]
fn inverted_kernel<M: Semiring, S: Float>(
    x_indptr: &[i32],
    x_indices: &[i32],
    x_values: &[S],
    x_norms: &[S],
    y_indptr: &[i32],
    y_indices: &[i32],
    y_values: &[S],
    y_norms: &[S],
    starts: &[i32],
    ends: &[i32],
    entry_rows: &[i32],
    entry_values: &[S],
    output: &mut [S],
    others: &mut [S],
    parameter: Parameter,
    shape: Shape,
    #[comptime] blueprint: Blueprint,
    #[comptime] own: bool,
    #[define(S)] _dtype: ElemType,
) {
    let plane = comptime!(blueprint.plane);
    let mut tally = Tally::<S>::new::<M>(parameter.value::<S>(), blueprint);
    let x = Sparse::<S>::new(x_indptr, x_indices, x_values, x_norms);
    let y = Sparse::<S>::new(y_indptr, y_indices, y_values, y_norms);
    let two = Two::<S>::new(x, y, shape.cols as u32, &parameter, own);
    let entries = Entries::<S>::new(starts, ends, entry_rows, entry_values);
    let tile = CUBE_POS / shape.groups;
    let group = CUBE_POS - tile * shape.groups;
    let row = group * comptime!(blueprint.planes as usize) + UNIT_POS_Y as usize;
    let lane = UNIT_POS_X as usize;
    let first = tile * shape.tile;
    // No cube waits for another plane, so planes may end.
    if tile >= shape.tiles || row >= shape.rows {
        terminate!();
    }
    if comptime!(blueprint.half) {
        if row >= first + shape.tile {
            terminate!();
        }
    }
    tally.clear::<M>();
    let i = shape.first + row;
    let begin = two.left().start(i);
    let count = two.left().start(i + 1) - begin;
    let bits = two.left_parts(i);
    let across = min(shape.tile, shape.across - first);
    let base = row * shape.across + first;
    let mut waiting = Waiting::<S>::new(output, others, base, across, comptime!(plane as usize));
    if comptime!(blueprint.parts) {
        if bits < WHOLE {
            waiting.clear::<M>();
        }
    }
    if comptime!(plane > 1) {
        sync_plane();
    }
    let mut done = 0usize;
    let mut last_column = 0u32;
    let mut norm = S::new(0.0);
    let mut batch = Batch::<S>::new(blueprint);
    let mut next = Batch::<S>::new(blueprint);
    while done < count {
        // Each lane has an entry, and where the entries of its column are.
        let mine = done + lane;
        let mut value = S::new(0.0);
        let mut start = 0i32;
        let mut end = 0i32;
        let mut column = 0u32;
        if mine < count {
            value = two.left().value(begin + mine);
            column = two.left().column(begin + mine) as u32;
            let counter = tile * shape.cols + column as usize;
            start = entries.starts[counter];
            end = entries.ends[counter];
        }
        let mut there = min(count - done, comptime!(plane as usize)) as u32;
        if comptime!(blueprint.parts) {
            if bits < WHOLE {
                // Those of one part.
                let first_column = of_lane::<u32>(column, 0, plane);
                let part = first_column >> bits;
                let among = mine < count && column >> bits == part;
                there = of_plane(u32::cast_from(among), plane);
                if done > 0 && part != last_column >> bits {
                    tally.hand_over::<M>(
                        &two,
                        &mut waiting,
                        bits,
                        first,
                        last_column,
                        first_column,
                    );
                }
                last_column = first_column;
            }
        }
        let mut a = of_lane::<S>(value, 0, plane);
        let mut from = of_lane::<i32>(start, 0, plane);
        let mut to = of_lane::<i32>(end, 0, plane);
        batch.read(from, to, &entries);
        let mut turn = 0u32;
        while turn < there {
            turn += 1;
            // Read before what was read is needed; there may be none.
            let lane = min(turn, comptime!(plane - 1));
            let next_from = of_lane::<i32>(start, lane, plane);
            let next_to = of_lane::<i32>(end, lane, plane);
            next.read(next_from, next_to, &entries);
            tally.add::<M>(a, from, to, &mut batch, &entries);
            if comptime!(M::NEEDS.covered) {
                norm += M::norm::<S>(a, two.p);
                if (done as u32 + turn) & comptime!(LOOK - 1) == 0 {
                    if !tally.reaches(norm) {
                        turn = there;
                        done = count;
                    }
                }
            }
            a = of_lane::<S>(value, lane, plane);
            from = next_from;
            to = next_to;
            batch.copy(&next);
        }
        done += there as usize;
    }
    if comptime!(blueprint.parts) {
        if bits < WHOLE {
            tally.take_back::<M>(&waiting);
        }
    }
    let mut place = lane;
    while place < across {
        let j = first + place;
        let total = tally.total(place);
        let mut other = S::new(0.0);
        if comptime!(M::NEEDS.other) {
            other = tally.other(place);
        }
        waiting.totals[base + place] = two.finish::<M>(i, j, total, other);
        place += comptime!(plane as usize);
    }
}

/// The sum over the lanes of the plane.
#[cube]
fn of_plane(count: u32, #[comptime] plane: u32) -> u32 {
    let mut sum = count;
    if comptime!(plane > 1) {
        sum = plane_sum(count);
    }
    sum
}

/// What a lane of the plane has.
#[cube]
fn of_lane<T: CubePrimitive>(value: T, lane: u32, #[comptime] plane: u32) -> T {
    let mut found = value;
    if comptime!(plane > 1) {
        found = plane_shuffle(value, lane);
    }
    found
}
