//! Which routine runs a request, and all the thresholds of that choice.

use cubecl::{features::Plane, ir::ElemType, prelude::*};

use super::{
    Problem,
    options::Method,
    routines::{Routine, listing::TILE_ITEMS, unit::BLOCK},
    sampled::{Plan, plan},
    search::exact_passes,
    subranges::{SUBRANGES, most_members},
};
use crate::{error::KernelError, launch::units_per_cube};

/// Longest rows any routine takes: column numbers and counts stay exact in 32-bit integers and f32. One row alone may
/// be longer, for the exact method: see [`crate::topk::topk_vector`].
pub const MAX_COLS: usize = 1 << 24;
/// Most rows in one call.
pub const MAX_ROWS: usize = 1 << 31;

/// Elements of a row that one unit keeps in registers before the row is spread over more units; the
/// most where there are no more.
pub(crate) const TEAM_ITEMS: usize = 32;
/// Most units in a cube of the plane routine: 64 read 2^20 rows of 64 elements in 0.116 ms, 128 in 0.118, 256 in
/// 0.123; 2^20 rows of 256 in 0.384, 0.386 and 0.395 (NVIDIA H200).
pub(crate) const PLANE_CUBE_UNITS: u32 = 64;
/// Most members that a cube lists in shared memory, 4 bytes each; never more than half of that memory.
const MAX_LISTED: usize = 1 << 12;
/// Where at most one element in so many is wanted, the members of a normal row span few powers of two: the least of a
/// third is 0.43 deviations above the mean, that of half of the row is as good as zero.
pub(crate) const FEW: usize = 3;
/// Midpoints of early stop that are all counted; of more, the first are compared by codes. 2^20 rows of 256 took
/// 0.320 ms with 4, 0.339 with 5 and 0.353 with 8; each that is counted costs 0.018 (NVIDIA H200).
pub(crate) const FEW_MIDPOINTS: u32 = 4;
/// Most units in a cube of the block routine. With 1024, an H200 has 64 registers for each and spills:
/// 2^14 rows of 32,768 took 11.4 ms, 22 times a read and a write.
const BLOCK_CUBE_UNITS: u32 = 512;
/// Rows from which on the stream routine is faster than the block routine: 0.71 ms instead of 0.98 for 2^16 rows of
/// 8192, 0.42 instead of 0.40 for 4096 (NVIDIA H200).
const STREAM_COLS: usize = 1 << 13;
/// Rows below this length, and members up to this many, are found by delegates: 17 of each row of distances, 3430, 6040 and 10,000
/// square, in 0.09, 0.2 and 0.33 ms less than by the block routine and, the last, the stream routine (NVIDIA H200; all of the
/// nearest neighbours by Manhattan 0.58 to 0.49, by Canberra 4.01 to 3.81 and 4.99 to 4.66). Longer rows and more members
/// have not been compared.
const DELEGATE_COLS: usize = 1 << 14;
const DELEGATE_MEMBERS: usize = 32;
/// Elements that a unit of the stream routine samples, and those of rows from this length on.
pub(crate) const SAMPLE_ITEMS: usize = 8;
pub(crate) const LONG_SAMPLE_ITEMS: usize = 16;
pub(crate) const LONG_SAMPLE: usize = 1 << 18;
/// Columns that a unit of it lists, whatever suffices.
pub(crate) const LIST_ITEMS: [usize; 4] = [4, 8, 16, 32];
/// Units of the cube routine, and of its long rows.
pub(crate) const CUBE_UNITS: u32 = 256;
const LONG_CUBE_UNITS: u32 = 1024;
const LONG_ROW: usize = 1 << 14;
/// Rows up to this long are left to single units on a GPU without planes.
const MAX_UNIT_COLS: usize = 64;
/// Shared memory in which a cube puts rows of a gradient together.
const ASSEMBLED_BYTES: usize = 1 << 14;
/// Fewest units in a cube for the cube routine to be chosen: below it the device is a CPU.
const MIN_CUBE_UNITS: u32 = 32;

/// Plane size of the device, when all its planes have the same.
pub(crate) fn plane_size(client: &Client) -> Option<u32> {
    let hardware = &client.properties().hardware;
    (hardware.plane_size_min == hardware.plane_size_max && hardware.plane_size_max > 1)
        .then_some(hardware.plane_size_max)
}

/// Units of a plane; 1 where there are no planes.
pub(crate) fn plane_or_unit(client: &Client) -> u32 {
    let planes = client.features().plane.contains(Plane::Ops) || is_llvmpipe(client);
    plane_size(client).filter(|_| planes).unwrap_or(1)
}

/// Members of a row that the plane routine lists in shared memory: k, rounded up so that k does not
/// force many kernels; 0 where planes cannot wait for themselves or shared memory fails.
pub(crate) fn listed(client: &Client, k: usize, cols: usize, rows: usize) -> usize {
    if !client.features().plane.contains(Plane::Sync) || is_llvmpipe(client) {
        return 0;
    }
    // A quarter of the row, half of it, or all.
    let quarter = cols.div_ceil(4);
    let listed = [quarter, 2 * quarter].into_iter().find(|&some| k <= some);
    let listed = listed.unwrap_or(cols);
    let room = client.properties().hardware.max_shared_memory_size / (2 * size_of::<u32>());
    if listed * rows <= room.min(MAX_LISTED) {
        listed
    } else {
        0
    }
}

/// Units in a cube of the stream routine: the more, the fewer cubes a chip holds, and the more each search
/// in sample and list costs. 64 read 2^16 rows of 4096 in 0.363 ms, 128 in 0.423; 128 those of 8192 in 0.710, 64
/// and 256 in 0.809 and 0.899; 256 read 2^14 rows of 32,768 in 0.697 ms, 128 in 0.742; 512 read 2^10 rows of
/// 2^20 in 1.38 ms, 256, which must list twice as much each, in 1.95 (NVIDIA H200).
pub(crate) fn stream_units(client: &Client, cols: usize) -> u32 {
    let wanted = if cols < LONG_SAMPLE {
        (cols / 64).clamp(64, 256).next_power_of_two() as u32
    } else {
        512
    };
    units_per_cube(client, wanted.max(2 * plane_size(client).unwrap_or(1)))
}

/// Units in a cube of the cube routine.
pub(crate) fn cube_units(client: &Client, cols: usize) -> u32 {
    let wanted = if cols >= LONG_ROW {
        LONG_CUBE_UNITS
    } else {
        CUBE_UNITS
    };
    units_per_cube(client, wanted)
}

/// Elements that fit into the shared memory in which a cube puts whole rows of a gradient together; 0 where
/// they are better put together in the output.
pub(crate) fn assembled(client: &Client, cols: usize, size: usize) -> usize {
    let most = ASSEMBLED_BYTES / size;
    let room = client.properties().hardware.max_shared_memory_size;
    let small = units_per_cube(client, CUBE_UNITS) < MIN_CUBE_UNITS || room < 2 * ASSEMBLED_BYTES;
    if cols > most || small || is_llvmpipe(client) {
        0
    } else {
        most
    }
}

/// Why llvmpipe does not run kernels with shared memory.
pub(crate) const NO_LAYOUTS: &str =
    "llvmpipe lacks the workgroup memory layouts that it is compiled with";

/// Whether cubes have many units; elsewhere the device is a CPU.
pub(super) fn on_gpu(client: &Client) -> bool {
    units_per_cube(client, CUBE_UNITS) >= MIN_CUBE_UNITS && !is_llvmpipe(client)
}

/// Chooses the routine for a request.
pub(crate) fn select(client: &Client, problem: &Problem) -> Result<Routine, KernelError> {
    let has_planes = client.features().plane.contains(Plane::Ops);
    let on_gpu = on_gpu(client);
    if has_planes {
        let long = problem.cols >= STREAM_COLS;
        let few = problem.cols < DELEGATE_COLS && problem.k <= DELEGATE_MEMBERS;
        let order: &[Routine] = match (few, long) {
            (true, _) => &[Routine::Plane, Routine::Delegate, Routine::Block],
            (false, true) => &[Routine::Plane, Routine::Stream, Routine::Block],
            (false, false) => &[Routine::Plane, Routine::Block, Routine::Stream],
        };
        for &routine in order {
            if check(routine, client, problem).is_ok() {
                return Ok(routine);
            }
        }
    }
    let routine = if on_gpu && problem.cols > MAX_UNIT_COLS {
        Routine::Cube
    } else {
        Routine::Unit
    };
    check(routine, client, problem)?;
    Ok(routine)
}

/// Whether a routine can run the request. The feature `Plane::Ops` is not asked for here: a forced
/// plane routine may run on devices that do not list it.
pub(crate) fn check(
    routine: Routine,
    client: &Client,
    problem: &Problem,
) -> Result<(), KernelError> {
    let refuse = |reason: String| {
        Err(KernelError::Routine {
            routine: routine.name(),
            reason,
        })
    };
    let cols = problem.cols;
    match routine {
        Routine::Plane => match plane_size(client) {
            None => refuse("the device has no planes of one fixed size".into()),
            Some(plane) if cols > plane as usize * TEAM_ITEMS => refuse(format!(
                "rows of {cols} elements exceed the {} that a plane of {plane} units holds",
                plane as usize * TEAM_ITEMS
            )),
            Some(_) => Ok(()),
        },
        Routine::Block => {
            let units = units_per_cube(client, BLOCK_CUBE_UNITS) as usize;
            match plane_size(client) {
                _ if is_llvmpipe(client) => refuse(NO_LAYOUTS.into()),
                None => refuse("the device has no planes of one fixed size".into()),
                Some(plane) if 2 * plane as usize > units => {
                    refuse(format!("a cube of {units} units holds one plane only"))
                }
                Some(_) if cols > units * TEAM_ITEMS => refuse(format!(
                    "rows of {cols} elements exceed the {} that a cube of {units} units holds",
                    units * TEAM_ITEMS
                )),
                Some(_) => Ok(()),
            }
        }
        Routine::Delegate => check_delegate(client, problem).or_else(refuse),
        Routine::Stream => check_stream(client, problem).or_else(refuse),
        Routine::Cube if is_llvmpipe(client) => refuse(NO_LAYOUTS.into()),
        Routine::Unit if is_llvmpipe(client) => {
            let jumps = cols.div_ceil(BLOCK as usize) * (problem.passes + 2) + problem.passes;
            if jumps > LLVMPIPE_JUMPS {
                refuse(format!(
                    "rows of {cols} elements may take {jumps} loop iterations, llvmpipe stops after {LLVMPIPE_JUMPS}"
                ))
            } else {
                Ok(())
            }
        }
        Routine::Cube | Routine::Unit => Ok(()),
    }
}

/// Why the delegate routine cannot run a request.
fn check_delegate(client: &Client, problem: &Problem) -> Result<(), String> {
    if problem.ragged {
        return Err("it serves rows without lengths of their own only".into());
    }
    let plane = plane_size(client).ok_or("the device has no planes of one fixed size")? as usize;
    if is_llvmpipe(client) {
        return Err(NO_LAYOUTS.into());
    }
    if !problem.exact {
        return Err("it serves the exact method only".into());
    }
    let least = plane * SUBRANGES * problem.width;
    if problem.cols < least {
        return Err(format!(
            "rows of {} elements are shorter than the {least} that a plane of {plane} units reads at a time",
            problem.cols
        ));
    }
    let most = most_members(plane);
    if problem.k > most {
        return Err(format!(
            "k = {} exceeds {most}, a quarter of its delegates",
            problem.k
        ));
    }
    Ok(())
}

/// Why the stream routine cannot run a request.
fn check_stream(client: &Client, problem: &Problem) -> Result<(), String> {
    if problem.ragged {
        return Err("it serves rows without lengths of their own only".into());
    }
    let cols = problem.cols;
    let units = stream_units(client, cols) as usize;
    let plane = plane_size(client).ok_or("the device has no planes of one fixed size")? as usize;
    if is_llvmpipe(client) {
        return Err(NO_LAYOUTS.into());
    }
    if !problem.exact {
        return Err("it serves the exact method only".into());
    }
    if 2 * plane > units {
        return Err(format!("a cube of {units} units holds one plane only"));
    }
    if cols < units * TILE_ITEMS {
        return Err(format!(
            "rows of {cols} elements are shorter than the {} that a cube of {units} units reads at a time",
            units * TILE_ITEMS
        ));
    }
    if problem.width * plane < TILE_ITEMS {
        return Err(format!(
            "a plane of {plane} units, {} elements a load, reads less than the {TILE_ITEMS} that a unit lists",
            problem.width
        ));
    }
    let room = client.properties().hardware.max_shared_memory_size / (2 * size_of::<u32>());
    match plan(problem.k, cols, units) {
        Ok(plan) if plan.list_items * units <= room => Ok(()),
        Ok(Plan { list_items, .. }) => Err(format!(
            "its list of {} columns exceeds half of the shared memory, {room}",
            list_items * units
        )),
        Err(needed) => Err(format!(
            "k = {} of {cols} needs a list of {needed} columns, it holds {}",
            problem.k,
            units * LIST_ITEMS[LIST_ITEMS.len() - 1]
        )),
    }
}

/// Loop iterations after which Mesa's software driver silently leaves a shader's loops.
const LLVMPIPE_JUMPS: usize = 65_535;

/// Whether the device is Mesa's software Vulkan driver.
pub(crate) fn is_llvmpipe(client: &Client) -> bool {
    client.properties().identity.name.contains("llvmpipe")
}

/// Halvings of [`Method::EarlyStop`] that a kernel carries out: at most as many as can change the
/// interval.
///
/// A range of floats is below `2^(E + 2)` wide, and no normal ones are closer than `2^-(E + P)`,
/// where `E` is the greatest exponent and `P` the number of digits behind the leading one: 279
/// halvings for f32, 2100 for f64. The bounds leave room for midpoints that are rounded. Integers
/// take as many as they have bits.
pub(crate) fn halvings(max_iter: u32, dtype: ElemType) -> u32 {
    let most = match dtype {
        ElemType::Float(_) if dtype.size() == 8 => 2_200,
        ElemType::Float(_) => 320,
        // One more for a range that is halved to its last two values.
        _ => 8 * dtype.size() as u32 + 1,
    };
    max_iter.min(most)
}

/// The most passes over a row that a search may take.
pub(crate) fn passes(method: Method, dtype: ElemType) -> usize {
    let wide = dtype.size() == 8;
    let exact = exact_passes(if wide { 64 } else { 32 });
    let found = match method {
        Method::Exact => 0,
        Method::EarlyStop(max_iter) => halvings(max_iter, dtype) as usize,
        // From the greatest float to the least normal one, then through its digits.
        Method::Precision(_) => {
            if wide {
                2 * 1024 + 53
            } else {
                2 * 128 + 24
            }
        }
    };
    exact + found + 2
}
