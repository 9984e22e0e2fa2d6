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
#![allow(
    clippy::identity_op,
    reason = "a sum is a copy, while a second name is the same variable"
)]

mod tally;

use crate::device::LLVMPIPE_REFUSAL;
use crate::device::accumulator;
use crate::device::is_llvmpipe;
use crate::device::plane_or_unit;
use crate::device::units_per_cube;
use cubecl::{features::Plane, ir::ElemType, prelude::*};

use super::{
    Job, Matrix, Parameter,
    columns::{self, TILE_BYTES},
    join,
    pair::{Sparse, Two},
    parts::{WHOLE, part_bits},
    semiring::{Needs, Rescale, Semiring},
};
use crate::error::KernelError;
use crate::launch::Grid;
use crate::launch::allocate;
use crate::launch::argument;
use tally::{Entries, Lanes, Tally, Visit, Waiting, of_lane};

/// Distances of a unit that are made of sums at a time.
const TOGETHER: usize = 4;
/// Planes that share a row, each with a part of the columns, where the longest row has so many entries, or more, but is one
/// [part](super::parts). Whether they do goes by the index alone, so that sums are the same for any rows that are compared with
/// it. By one plane the inverted index of kos-bow (3430 rows of 103 entries, 457 at most) took 304 µs, as long as the longest rows,
/// by four 241; KL, whose rows are given up early, 0.56 and 0.67 ms in all, and so not for those (NVIDIA H200).
const CREW: u32 = 4;
const CREW_FROM: u32 = 256;
/// Units of a cube: one plane, so that none waits for the longer row of another.
const UNITS: u32 = 32;
/// Sums that nothing reads, behind those of a plane, one for each unit; and the fewest.
const SPARE: usize = 4;

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
        return Err(refused(LLVMPIPE_REFUSAL.into()));
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
    /// Planes that share a row, which are then those of the cube.
    crew: u32,
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
    let room = columns.room;
    let sums = if M::NEEDS.other { 2 } else { 1 };
    let limit = client.properties().hardware.max_shared_memory_size;
    // Where second sums are not needed there are the spare ones.
    let size = job.x.dtype.size();
    let spare = SPARE.max(plane as usize);
    let fitting = (limit - SPARE * size) / ((room + spare) * size * sums);
    let planes_of = |units: u32| {
        let planes = units_per_cube(client, units.max(plane)) / plane;
        planes.min(1 << fitting.max(1).ilog2())
    };
    let longest = job.y.longest as u32;
    let one_part = part_bits(longest, job.x.cols as u32) == WHOLE;
    let shared = longest >= CREW_FROM && one_part && !M::NEEDS.covered;
    let crew = match plane > 1 && shared {
        true if planes_of(CREW * plane) == CREW => CREW,
        _ => 1,
    };
    let planes = if crew > 1 { crew } else { planes_of(UNITS) };
    let longest = job.x.longest.min(job.y.longest);
    let blueprint = Blueprint {
        plane,
        planes,
        room,
        half: job.half(&M::NEEDS),
        parts: part_bits(longest as u32, job.x.cols as u32) < WHOLE,
        crew,
    };
    let groups = job.rows.len().div_ceil((planes / crew) as usize);
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
            columns.argument(dtype)?,
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
                job.y.nnz,
            ),
            blueprint,
            job.own,
            [dtype, columns::bits(dtype)],
        );
    }
    match blueprint.half {
        true => join::mirror::<M>(job),
        false => Ok(()),
    }
}

/// Rows of `x` from the first on, rows of `y` in tiles, groups of rows for each tile, and where the entries by column end.
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
    end: usize,
}

#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments, reason = "three matrices of four buffers")]
fn inverted_kernel<M: Semiring, S: Float, P: Int>(
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
    packed: &[Vector<P, Const<2>>],
    output: &mut [S],
    others: &mut [S],
    parameter: Parameter,
    shape: Shape,
    #[comptime] blueprint: Blueprint,
    #[comptime] own: bool,
    #[define(S, P)] _dtypes: [ElemType; 2],
) {
    let plane = comptime!(blueprint.plane);
    let mut tally = Tally::<S>::new::<M>(parameter.value::<S>(), blueprint);
    let x = Sparse::<S>::new(x_indptr, x_indices, x_values, x_norms);
    let y = Sparse::<S>::new(y_indptr, y_indices, y_values, y_norms);
    let two = Two::<S>::new(x, y, shape.cols as u32, &parameter, own);
    let entries = Entries::<P>::new(starts, ends, packed, shape.end);
    let tile = CUBE_POS / shape.groups;
    let group = CUBE_POS - tile * shape.groups;
    let mut member = 0u32;
    let mut row = group * comptime!(blueprint.planes as usize) + UNIT_POS_Y as usize;
    if comptime!(blueprint.crew > 1) {
        member = UNIT_POS_Y;
        row = group + 0;
    }
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
    let mut begin = two.left().start(i);
    let mut count = two.left().start(i + 1) - begin;
    if comptime!(blueprint.crew > 1) {
        // Those of the member's columns.
        let share = shape.cols as u32 / comptime!(blueprint.crew) + 1;
        let before = two.left().before(begin, count, member * share, plane);
        count = two.left().before(begin, count, (member + 1) * share, plane) - before;
        begin += before;
    }
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
    // What was read before it is needed.
    let mut first_visit = Visit::<S>::new(blueprint);
    let mut second = Visit::<S>::new(blueprint);
    let mut third = Visit::<S>::new(blueprint);
    while done < count {
        // Each lane has an entry, and where the entries of its column are.
        let mine = done + lane;
        let there = min(count - done, comptime!(plane as usize)) as u32;
        let mut lanes = Lanes::<S> {
            value: S::new(0.0),
            start: 0i32,
            end: 0i32,
            there,
        };
        let mut column = 0u32;
        if mine < count {
            lanes.value = two.left().value(begin + mine);
            column = two.left().column(begin + mine) as u32;
            let counter = tile * shape.cols + column as usize;
            lanes.start = entries.starts[counter];
            lanes.end = entries.ends[counter];
        }
        if comptime!(blueprint.parts) {
            if bits < WHOLE {
                // Those of one part.
                let first_column = of_lane::<u32>(column, 0, plane);
                let part = first_column >> bits;
                let among = mine < count && column >> bits == part;
                lanes.there = of_plane(u32::cast_from(among), plane);
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
        first_visit.begin::<P>(0, &lanes, &entries);
        if comptime!(plane > 1) {
            second.begin::<P>(1, &lanes, &entries);
        }
        let mut turn = 0u32;
        while turn < lanes.there {
            if comptime!(plane > 1) {
                third.begin::<P>(turn + 2, &lanes, &entries);
                tally.add::<M, P>(&mut first_visit, &entries);
                first_visit.begin::<P>(turn + 3, &lanes, &entries);
                tally.add::<M, P>(&mut second, &entries);
                second.begin::<P>(turn + 4, &lanes, &entries);
                tally.add::<M, P>(&mut third, &entries);
            } else {
                tally.add::<M, P>(&mut first_visit, &entries);
            }
            turn += 3;
            if comptime!(M::NEEDS.covered) {
                if tally.given_up() {
                    turn = lanes.there;
                    done = count;
                }
            }
        }
        done += lanes.there as usize;
    }
    if comptime!(blueprint.parts) {
        if bits < WHOLE {
            tally.take_back::<M>(&waiting);
        }
    }
    // Several at a time, so that they do not wait for each other's norms; then what cancels.
    if comptime!(blueprint.crew > 1) {
        sync_cube();
    }
    let spread = comptime!((blueprint.crew * plane) as usize);
    let begin = member as usize * comptime!(plane as usize) + lane;
    let mut again = false.runtime();
    let mut place = begin + 0;
    while place < across {
        let mut distances = Array::<S>::new(TOGETHER);
        #[unroll]
        for n in 0..TOGETHER {
            let at = min(place + comptime!(n * spread), across - 1);
            let other = tally.second::<M>(at);
            let draft = two.draft::<M>(i, first + at, tally.total::<M>(at), other);
            distances[n] = draft.distance;
            again = select(draft.kept, again, true);
        }
        #[unroll]
        for n in 0..TOGETHER {
            let at = place + comptime!(n * spread);
            if at < across {
                waiting.totals[base + at] = distances[n];
            }
        }
        place += comptime!(TOGETHER * spread);
    }
    if comptime!(M::NEEDS.direct || Rescale::pairs(M::NEEDS.rescale)) {
        if again {
            place = begin + 0;
            while place < across {
                let other = tally.second::<M>(place);
                let total = tally.total::<M>(place);
                waiting.totals[base + place] = two.finish::<M>(i, first + place, total, other);
                place += spread;
            }
        }
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
