//! Products with compressed rows: a plane adds the entries of an item into sums in shared memory.

mod unit;

use crate::device::rounded_accumulator;
use cubecl::{ir::ElemType, prelude::*, server::Handle};

use super::{
    Compressed, Csr, Operand,
    entries::{Entries, row_factor},
    gather::Cut,
    packed::{self, Layout, pack},
    partition::Item,
    shape::{Shape, check, fewest, room},
    sums,
};
use crate::{
    error::KernelError,
    launch::{Grid, aligned, allocate, argument},
};

/// How products with compressed rows are mapped to units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routine {
    /// A plane for each row, or part of one, with sums in shared memory.
    Plane,
    /// The same, after columns have been put behind their values: f32, values and columns of a row in 128 bytes, columns in whole
    /// words.
    Packed,
    /// A unit for each element of the result.
    Unit,
}

/// All routines.
pub const ROUTINES: [Routine; 3] = [Routine::Plane, Routine::Packed, Routine::Unit];

impl Routine {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plane => "plane",
            Self::Packed => "packed",
            Self::Unit => "unit",
        }
    }
}

/// Elements of the sums of a plane, beyond which entries are gone through one after the other.
const SUMS: usize = 1024;
/// The same where rows have fewer entries than this on average: to clear sums and to put them together takes longer there than units that
/// meet. On a graph of ogbn-products' size, 51 entries to a row, 4.54, 5.93 and 9.11 ms for k = 16, 32 and 64 of 256, 5.54, 6.58 and 9.29
/// with 256, and 5.28, 7.59 and 9.04 with 1024 (NVIDIA H200). Between that and Reddit's 492 entries nothing was measured.
const SHORT_SUMS: usize = 512;
const SHORT: usize = 128;
/// The same where a cube is given less shared memory than this, and so a processor few planes, unless units of a plane had no member then:
/// by Vulkan, which gives 48 KiB, 3.61, 4.44 and 6.84 ms for k = 16, 32 and 64 of 256 on a graph of Reddit's size, 3.02, 4.91 and 8.87
/// with 512, and 5.23, 9.48 and 8.99 with 1024 (NVIDIA H200).
const FEW_SUMS: usize = 256;
const LARGE: usize = 64 << 10;
/// Elements of a unit whose loads are under way at a time: 4 took 2.34, 3.29 and 6.15 ms for k = 16, 32 and 64 of 256 on a graph of
/// Reddit's size, 8 2.38, 3.38 and 6.16; 7.20, 7.57 and 8.87, and 7.36, 7.84 and 8.41 on one of ogbn-products' size (NVIDIA H200).
const FLIGHT: usize = 4;
/// Entries of a team that are under way once fewer than that are left: with as many as before, checked, 4.56, 5.90 and 10.8 ms on a graph of
/// ogbn-products' size, with 2 4.44, 5.78 and 9.00, with 1 4.48, 5.85 and 8.89 (NVIDIA H200).
const TAIL: usize = 2;
/// Most elements of a load: columns of one byte each are a word.
const VECTOR: usize = 4;

/// Most elements of the sums of a plane.
fn most_sums(client: &Client, plane: u32, csr: &Csr, x: &Compressed) -> usize {
    if client.properties().hardware.max_shared_memory_size >= LARGE {
        let short = csr.nnz < csr.rows * SHORT;
        return if short { SHORT_SUMS } else { SUMS };
    }
    let of_members = plane as usize * x.width / x.k.next_power_of_two();
    FEW_SUMS.max(of_members).min(SUMS)
}

/// Elements of a load: as many as leave no unit of the smallest team idle.
fn vector(client: &Client, plane: u32, x: &Compressed, sums: usize) -> usize {
    let fitting = client
        .io_optimized_vector_sizes(x.dtype.size())
        .filter(|&vector| {
            vector <= VECTOR
                && x.k.is_multiple_of(vector)
                && x.k / vector >= fewest(plane, x.width, sums)
                && aligned(x.values, vector * x.dtype.size())
                && aligned(x.columns, vector * x.index.size())
        });
    fitting.max().unwrap_or(1)
}

pub(super) fn launch(
    client: &Client,
    operand: &Operand,
    x: &Compressed,
    routine: Option<Routine>,
) -> Result<Handle, KernelError> {
    let sum = rounded_accumulator(client, x.dtype)?;
    // All units of a plane are one team where there is room for no more sums.
    let bytes = |plane: u32| room(plane as usize, plane as usize, x.width) * sum.size();
    let planes = match routine {
        Some(Routine::Unit) => None,
        Some(forced) => Some(check(client, forced.name(), bytes)?),
        None => check(client, "plane", bytes).ok(),
    };
    let Operand { csr, partition, .. } = operand;
    let elements = csr.rows * x.width;
    let output = allocate(client, "output", elements, x.dtype)?;
    if elements == 0 {
        return Ok(output);
    }
    if x.k == 0 {
        crate::launch::fill_zero(client, &output, x.dtype, elements)?;
        return Ok(output);
    }
    let largest = elements.max(csr.cols * x.k).max(csr.nnz);
    let slots = (partition.slots() * x.width).max(1);
    let partials = allocate(client, "partials", slots, sum)?;
    let arguments = operand.arguments(client, x.dtype, sum)?;
    let partials_argument = argument(&partials, "partials", sum, slots)?;
    let packing = match routine {
        Some(routine) => routine == Routine::Packed,
        None => planes.is_some() && packed::pays(csr, x),
    };
    let packed = packing.then(|| pack(client, csr, x)).transpose()?;
    let layout = packed
        .as_ref()
        .map_or(Layout::apart(x.k), |packed| packed.layout);
    let [(values, count), (columns, places)] = match &packed {
        Some(packed) => [
            (&packed.handle, csr.cols * layout.values),
            (&packed.handle, csr.cols * layout.columns),
        ],
        None => [(x.values, csr.cols * x.k), (x.columns, csr.cols * x.k)],
    };
    let values = argument(values, "values", x.dtype, count)?;
    let columns = argument(columns, "columns", x.index, places)?;
    let result = argument(&output, "output", x.dtype, elements)?;
    // SAFETY: `argument` checks the lengths; offsets and columns are in range by the contracts of `Csr` and `Compressed`;
    // unused buffers stand in for absent ones and are not read.
    unsafe {
        if let Some(plane) = planes {
            let sums = most_sums(client, plane, csr, x);
            let vector = vector(client, plane, x, sums);
            let shape = Shape::new(
                client,
                plane,
                operand,
                [x.k, x.width],
                [vector, sums, FLIGHT],
            );
            let cubes = partition.items().div_ceil(shape.planes as usize);
            let dim = CubeDim::new_2d(plane, shape.planes);
            let grid = Grid::new(client, cubes, dim, largest.max(places))?;
            let [value_stride, column_stride, offset] =
                [layout.values, layout.columns, layout.offset].map(|elements| elements / vector);
            plane_kernel::launch_unchecked(
                client,
                grid.count,
                grid.dim,
                grid.address,
                vector,
                partition.argument()?,
                arguments.indices,
                arguments.weights,
                arguments.entries,
                arguments.rows,
                arguments.cols,
                values,
                columns,
                result,
                partials_argument,
                partition.items(),
                x.k as u32,
                value_stride,
                column_stride,
                offset,
                shape,
                [x.dtype, sum, x.index],
            );
        } else {
            let units = partition.items() * x.width;
            let grid = Grid::elementwise(client, units, largest)?;
            unit::unit_kernel::launch_unchecked(
                client,
                grid.count,
                grid.dim,
                grid.address,
                partition.argument()?,
                arguments.indices,
                arguments.weights,
                arguments.entries,
                arguments.rows,
                arguments.cols,
                values,
                columns,
                result,
                partials_argument,
                partition.items(),
                x.k as u32,
                x.width,
                operand.factors(),
                [x.dtype, sum, x.index],
            );
        }
    }
    let cut = Cut {
        operand,
        partials: &partials,
        output: &output,
        dtype: x.dtype,
        sum,
        across: x.width,
    };
    cut.combine(client)?;
    Ok(output)
}

/// A plane for each item; its teams take entries in turn, each into sums of its own.
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(
    clippy::too_many_arguments,
    reason = "two matrices, one with its factors"
)]
fn plane_kernel<E: Float, S: Float, I: Numeric, N: Size>(
    parts: &[i32],
    indices: &[i32],
    weights: &[E],
    entries: &[i32],
    rows: &[S],
    cols: &[S],
    values: &[Vector<E, N>],
    columns: &[Vector<I, N>],
    output: &mut [E],
    partials: &mut [S],
    items: usize,
    k: u32,
    value_stride: usize,
    column_stride: usize,
    offset: usize,
    #[comptime] shape: Shape,
    #[define(E, S, I)] _dtypes: [ElemType; 3],
) {
    let number = CUBE_POS * comptime!(shape.planes as usize) + UNIT_POS_Y as usize;
    if number >= items {
        terminate!();
    }
    let item = Item::read(parts, number);
    if item.row < 0 {
        terminate!();
    }
    let teams = comptime!(shape.teams());
    let own = UNIT_POS_Y as usize * comptime!(shape.room());
    let mut sums = Shared::<[S]>::new_slice(comptime!(shape.planes as usize * shape.room()));
    let mut place = UNIT_POS_X as usize;
    while place < comptime!(shape.room()) {
        sums[own + place] = S::new(0.0);
        place += comptime!(shape.plane as usize);
    }
    sync_plane();

    let loads = k / comptime!(shape.vector as u32);
    let team = UNIT_POS_X / shape.team;
    let lane = UNIT_POS_X - team * shape.team;
    let first = own + (team * shape.team) as usize;
    let source = Entries::<E, S>::new(indices, weights, entries, cols, comptime!(shape.factors));
    let mut entry = item.start + i32::cast_from(team);
    let tail = comptime!(shape.flight.min(TAIL));
    // First as many entries at a time as are under way, then fewer, the last perhaps for nothing.
    #[unroll]
    for phase in 0..comptime!(if tail < shape.flight { 2usize } else { 1usize }) {
        let rest = comptime!(phase == 1 || tail == shape.flight);
        let flight = comptime!(if rest { tail } else { shape.flight });
        let stride = comptime!((shape.teams() * flight) as i32);
        let left = item.end - (entry - i32::cast_from(team));
        // Teams go round together: they wait for each other.
        let rounds = if comptime!(rest) {
            (left + comptime!(stride - 1)) / stride
        } else {
            left / stride
        };
        for _round in 0..rounds {
            let mut terms = Array::<S>::new(comptime!(flight * shape.members * shape.vector));
            let mut places = Array::<u32>::new(comptime!(flight * shape.members * shape.vector));
            #[unroll]
            for i in 0..flight {
                let at = entry + comptime!((i * teams) as i32);
                // Past the end the last entry is read again, for nothing.
                let read = if comptime!(rest) {
                    min(at, item.end - 1)
                } else {
                    at
                };
                let column = source.column(read);
                let factor = source.factor(read, column);
                let of_values = column * value_stride;
                let of_columns = column * column_stride + offset;
                #[unroll]
                for m in 0..shape.members {
                    let own = lane + comptime!(m as u32 * shape.team);
                    let load = if comptime!(shape.full) {
                        own
                    } else {
                        min(own, loads - 1)
                    };
                    let value = values[of_values + load as usize];
                    let place = columns[of_columns + load as usize];
                    #[unroll]
                    for v in 0..shape.vector {
                        let value = S::cast_from(value.extract(v));
                        let term = if comptime!(shape.factors.any()) {
                            factor * value
                        } else {
                            value
                        };
                        let slot = comptime!((i * shape.members + m) * shape.vector + v);
                        terms[slot] = if comptime!(rest) {
                            select(at < item.end, term, S::new(0.0))
                        } else {
                            term
                        };
                        places[slot] = sums::place(u32::cast_from(place.extract(v)), shape);
                    }
                }
            }
            #[unroll]
            for i in 0..flight {
                #[unroll]
                for m in 0..shape.members {
                    if comptime!(shape.full) {
                        sums::add::<S>(
                            &mut sums,
                            first,
                            &terms,
                            &places,
                            comptime!(i * shape.members + m),
                            shape.vector,
                        );
                    } else {
                        if lane + comptime!(m as u32 * shape.team) < loads {
                            sums::add::<S>(
                                &mut sums,
                                first,
                                &terms,
                                &places,
                                comptime!(i * shape.members + m),
                                shape.vector,
                            );
                        }
                    }
                }
                sync_plane();
            }
            entry += stride;
        }
    }

    sums::collect::<S>(&mut sums, own, shape);
    let row = item.row as usize;
    let mut column = UNIT_POS_X as usize;
    while column < comptime!(shape.width) {
        let mut sum = sums[own + column + column / comptime!(shape.plane as usize)];
        if item.slot < 0 {
            if comptime!(shape.factors.rows) {
                sum *= row_factor::<S>(rows, row, comptime!(shape.factors));
            }
            output[row * comptime!(shape.width) + column] = E::cast_from(sum);
        } else {
            partials[item.slot as usize * comptime!(shape.width) + column] = sum;
        }
        column += comptime!(shape.plane as usize);
    }
}
