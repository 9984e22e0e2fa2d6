//! Distances by an inverted index, after Gustavson: for each entry of a row of `x` the entries of its column in `y` add to
//! sums in shared memory. The work is the pairs of entries in the same column, and no more.
//!
//! A plane has a row of `x` and a tile of rows of `y`. Its lanes take the entries of a column, which are of different rows, so
//! sums need no atomics and are added to in the order of the row's entries: deterministic.
#![allow(
    clippy::collapsible_if,
    reason = "outer conditions are decided when the kernel is compiled"
)]

use cubecl::{features::Plane, ir::ElemType, prelude::*};

use super::{
    Job, Matrix, Parameter,
    columns::{self, TILE_BYTES},
    join,
    pair::{Sparse, Two},
    semiring::{Needs, Semiring},
};
use crate::{
    aggregate::accumulator,
    error::KernelError,
    launch::{Grid, argument, units_per_cube},
    topk::select::{NO_LAYOUTS, is_llvmpipe, plane_or_unit},
};

/// Units of a cube: few, as it lasts as long as its longest row.
const UNITS: u32 = 64;
/// Entries of a column that a unit reads at a time.
const AHEAD: u32 = 4;

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
}

pub(super) fn launch<M: Semiring>(job: &Job) -> Result<(), KernelError> {
    let client = job.client;
    let columns = job.columns.expect("made with the index");
    let plane = plane_or_unit(client);
    // Few kernels for all sizes of tiles.
    let room = columns.tile.next_power_of_two().max(plane as usize);
    let sums = if M::NEEDS.other { 2 } else { 1 };
    let limit = client.properties().hardware.max_shared_memory_size;
    // Where second sums are not needed there is one of them.
    let fitting = (limit - job.x.dtype.size()) / (room * job.x.dtype.size() * sums);
    let planes = units_per_cube(client, UNITS.max(plane)) / plane;
    let planes = planes.min(1 << fitting.max(1).ilog2());
    let blueprint = Blueprint {
        plane,
        planes,
        room,
        half: job.half(&M::NEEDS),
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

/// Entries by column.
#[derive(CubeType)]
struct Entries<'a, S: Float> {
    starts: &'a [i32],
    ends: &'a [i32],
    rows: &'a [i32],
    values: &'a [S],
}

#[cube]
impl<'a, S: Float> Entries<'a, S> {
    fn new(starts: &'a [i32], ends: &'a [i32], rows: &'a [i32], values: &'a [S]) -> Entries<'a, S> {
        Entries::<'a, S> {
            starts,
            ends,
            rows,
            values,
        }
    }
}

/// The sums of a plane.
#[derive(CubeType)]
struct Tally<S: Float> {
    totals: Shared<[S]>,
    others: Shared<[S]>,
    /// The plane's first.
    base: usize,
    p: S,
}

#[cube]
impl<S: Float> Tally<S> {
    /// Adds the pairs of a value with the entries of a column.
    fn add<M: Semiring>(
        &mut self,
        value: S,
        start: i32,
        end: i32,
        entries: &Entries<S>,
        #[comptime] plane: u32,
    ) {
        let mut entry = start + UNIT_POS_X as i32;
        let step = comptime!((plane * AHEAD) as i32);
        while entry < end {
            // Read all of them before the first is needed.
            let mut rows = Array::<i32>::new(AHEAD as usize);
            let mut others = Array::<S>::new(AHEAD as usize);
            #[unroll]
            for n in 0..AHEAD {
                let at = entry + comptime!((n * plane) as i32);
                rows[n as usize] = -1;
                others[n as usize] = S::new(0.0);
                if at < end {
                    rows[n as usize] = entries.rows[at as usize];
                    others[n as usize] = entries.values[at as usize];
                }
            }
            #[unroll]
            for n in 0..AHEAD {
                let found = rows[n as usize];
                if found >= 0 {
                    let row = self.base + found as usize;
                    let other = others[n as usize];
                    let product = M::product::<S>(value, other, self.p);
                    self.totals[row] = M::reduce::<S>(self.totals[row], product);
                    if comptime!(M::NEEDS.other) {
                        self.others[row] += M::other::<S>(value, other);
                    }
                }
            }
            entry += step;
        }
        if comptime!(plane > 1) {
            sync_plane();
        }
    }
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
    parameter: Parameter,
    shape: Shape,
    #[comptime] blueprint: Blueprint,
    #[comptime] own: bool,
    #[define(S)] _dtype: ElemType,
) {
    let plane = comptime!(blueprint.plane);
    let room = comptime!(blueprint.room);
    let sums = comptime!(blueprint.planes as usize * room);
    let mut tally = Tally::<S> {
        totals: Shared::<[S]>::new_slice(sums),
        others: Shared::<[S]>::new_slice(comptime!(if M::NEEDS.other { sums } else { 1 })),
        base: UNIT_POS_Y as usize * room,
        p: parameter.value::<S>(),
    };
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
    let mut sum = lane;
    while sum < room {
        tally.totals[tally.base + sum] = M::identity::<S>();
        if comptime!(M::NEEDS.other) {
            tally.others[tally.base + sum] = S::new(0.0);
        }
        sum += comptime!(plane as usize);
    }
    if comptime!(plane > 1) {
        sync_plane();
    }
    let i = shape.first + row;
    let begin = two.left().start(i);
    let count = two.left().start(i + 1) - begin;
    let mut done = 0usize;
    while done < count {
        // Each lane has an entry, and where the entries of its column are.
        let mine = done + lane;
        let mut value = S::new(0.0);
        let mut start = 0i32;
        let mut end = 0i32;
        if mine < count {
            value = two.left().value(begin + mine);
            let counter = tile * shape.cols + two.left().column(begin + mine) as usize;
            start = entries.starts[counter];
            end = entries.ends[counter];
        }
        if comptime!(plane > 1) {
            let there = min(count - done, comptime!(plane as usize)) as u32;
            for turn in 0..there {
                tally.add::<M>(
                    plane_shuffle(value, turn),
                    plane_shuffle(start, turn),
                    plane_shuffle(end, turn),
                    &entries,
                    plane,
                );
            }
        } else {
            tally.add::<M>(value, start, end, &entries, plane);
        }
        done += comptime!(plane as usize);
    }
    let mut place = lane;
    let across = min(shape.tile, shape.across - first);
    while place < across {
        let j = first + place;
        let total = tally.totals[tally.base + place];
        let mut other = S::new(0.0);
        if comptime!(M::NEEDS.other) {
            other = tally.others[tally.base + place];
        }
        output[row * shape.across + j] = two.finish::<M>(i, j, total, other);
        place += comptime!(plane as usize);
    }
}
